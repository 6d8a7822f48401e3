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
