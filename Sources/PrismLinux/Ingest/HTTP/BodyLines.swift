import PrismProtocol

enum BodyLines {
  /// - Returns: how many lines there are, payloads that follow lines left out; `max` + 1 where there are more.
  static func count(_ body: Span<UInt8>, max: Int, lineBytesMax: Int) -> Int {
    let feeds = lineFeeds(body, max: max)
    return feeds < max ? feeds + 1 : requests(body, max: max, lineBytesMax: lineBytesMax)
  }

  private static func lineFeeds(_ body: Span<UInt8>, max: Int) -> Int {
    var (count, position) = (0, 0)
    while count < max, let end = RequestFramer.lineFeed(body, from: position) {
      count += 1
      position = end + 1
    }
    return count
  }

  /// Line feeds of a payload are no lines: its length is in the line before it.
  private static func requests(_ body: Span<UInt8>, max: Int, lineBytesMax: Int) -> Int {
    var (framer, count, position) = (RequestFramer(), 0, 0)
    while count <= max {
      switch framer.next(body, &position, lineBytesMax: lineBytesMax) {
      case .line(let range):
        count += 1
        guard !range.isEmpty else { continue }
        let bytes = RequestScanner.scan(body.extracting(range), reserved: ReservedKeys([])).followingBytes
        if bytes > 0, !framer.skip(bytes) { return count }
      case .starved, .lost: return count + (framer.heldBytes > 0 ? 1 : 0)
      case .heldLine, .payload, .tooLong: break
      }
    }
    return count
  }
}
