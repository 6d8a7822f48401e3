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
