import PrismProtocol

#if FUZZ
  import FuzzSupport
#endif

/// Request lines as they come on a connection: cut by the framer, taken apart by the scanner. A line that the scanner
/// takes the JSON parser must take, too, and its ranges must lie in the line.
#if FUZZ
  @main
#endif
enum RequestLineHarness: FuzzHarness {
  private static let reserved = ReservedKeys(["SYS_BRAND", "APP_NAME", "MONITOR_TYPE"])
  private static let lineBytesMax = 64 * 1024

  static func run(_ input: ArraySlice<UInt8>) {
    var framer = RequestFramer()
    let bytes = Array(input)
    let chunkBytes = max(1, min(bytes.count, Int(bytes.first ?? 1) * 16))
    var start = 0
    while start < bytes.count {
      let chunk = Array(bytes[start..<min(bytes.count, start + chunkBytes)])
      start += chunk.count
      read(chunk, &framer)
    }
  }

  private static func read(_ chunk: [UInt8], _ framer: inout RequestFramer) {
    var position = 0
    while true {
      switch framer.next(chunk.span, &position, lineBytesMax: lineBytesMax) {
      case .line(let range): scan(Array(chunk[range]), &framer)
      case .heldLine: scan(framer.takeHeld(), &framer)
      case .tooLong:
        let held = framer.takeHeld()
        _ = RequestScanner.refusal(ofTooLong: held.span, bytesMax: lineBytesMax)
      case .payload(let range, _): precondition(range.upperBound <= chunk.count)
      case .starved, .lost: return
      }
    }
  }

  private static func scan(_ line: [UInt8], _ framer: inout RequestFramer) {
    let scanned = RequestScanner.scan(line.span, reserved: reserved)
    guard case .success(let request) = scanned.request else {
      if scanned.followingBytes > 0 { _ = framer.skip(scanned.followingBytes) }
      return
    }
    guard let tree = try? JSONValue(parsing: line, allowsDuplicateKeys: true), tree.object != nil else {
      fatalError("the scanner takes what is no JSON object")
    }
    guard case .report(let report) = request else { return }
    precondition(report.type.string(in: line.span) == tree["type"]?.string)
    if case .members(let range, _) = report.meta {
      guard let meta = try? JSONValue(parsing: [0x7B] + line[range] + [0x7D], allowsDuplicateKeys: true) else {
        fatalError("the members of a meta are no JSON")
      }
      precondition(meta == tree["meta"])
    }
    if case .following(let bytes) = report.payload { framer.expectPayload(bytes) }
  }
}
