public import PrismProtocol

/// The members of a `$common` line, read once for all rows that share them.
public final class CommonInformation: Sendable {
  /// One JSON object of the members, each key once.
  public let object: [UInt8]
  /// A number for `object`: the start of its SHA-256.
  public let hash: Int64
  /// The fields that a receiver reads from `object`.
  public let fields: MetaFields
  /// By their keys.
  public let members: CommonMembers

  /// - Parameter range: of members in `text` that were checked, without braces.
  init(_ text: [UInt8], _ range: Range<Int>) throws(PacketError) {
    let members = CommonMembers(text, range)
    let object = members.object
    do throws(JSONError) { fields = try MetaFields(object.span) } catch { throw .unpackFailed }
    hash = try Self.hash(of: object)
    (self.members, self.object) = (members, object)
  }

  /// A number for a text that rows share: the start of its SHA-256.
  public static func hash(of text: [UInt8]) throws(PacketError) -> Int64 {
    try Hashing.sha256(text).prefix(8).reduce(0) { $0 << 8 | Int64($1) }
  }

  /// The bytes that the common members add to a row that has members of its own, all with other keys.
  public var addedBytes: Int { object.count - 1 }

  /// Appends a row with the common members behind its own ones, which win.
  /// - Parameter line: the row's place in `text`: an object.
  /// - Throws: `tooLarge` if it is longer than a meta may be.
  public func append(_ line: Range<Int>, of text: [UInt8], to result: inout [UInt8]) throws(PacketError) {
    let start = result.count
    result += text[line.lowerBound..<line.upperBound - 1]
    let own = (line.lowerBound + 1)..<(line.upperBound - 1)
    let comma = result.count
    if text[own].contains(where: { $0 > UInt8(ascii: " ") }) { result.append(UInt8(ascii: ",")) }
    let shared = result.count
    members.appendMissing(to: &result, in: text.span, own)
    if result.count == shared { result.removeSubrange(comma...) }
    result.append(UInt8(ascii: "}"))
    guard result.count - start <= Limits.metaBytesMax else { throw .tooLarge }
  }
}

/// The common information that packets had lately: a session sends the same with each of its packets.
///
/// Keep one for the readers of one queue; not for two threads at once.
public final class CommonCache {
  /// A longer line, and the least recently used one beyond these, is read again.
  static let (linesMax, lineBytesMax, bytesMax) = (64, 4096, 65_536)

  /// The one that was used last comes last.
  private var entries: [(line: [UInt8], common: CommonInformation)] = []
  private var bytes = 0

  public init() {}

  func knows(_ line: ArraySlice<UInt8>) -> Bool { common(of: line) != nil }

  func common(of line: ArraySlice<UInt8>) -> CommonInformation? {
    guard let place = entries.lastIndex(where: { $0.line.count == line.count && $0.line[...] == line }) else {
      return nil
    }
    if place < entries.count - 1 { entries.append(entries.remove(at: place)) }
    return entries[entries.count - 1].common
  }

  func note(_ common: CommonInformation, of line: ArraySlice<UInt8>) {
    guard line.count <= Self.lineBytesMax else { return }
    entries.append((Array(line), common))
    bytes += line.count
    while entries.count > Self.linesMax || bytes > Self.bytesMax { bytes -= entries.removeFirst().line.count }
  }
}
