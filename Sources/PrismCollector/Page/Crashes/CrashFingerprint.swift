import PrismBase
import PrismPacket

/// The common parts of crashes with one cause: type, reason, and the top frames without what differs between runs and
/// builds (addresses, line numbers).
struct CrashFingerprint: Sendable, Hashable {
  private static let framesCount = 6

  /// 16 hexadecimal digits.
  let text: String

  init(type: String, reason: String, frames: [String]) {
    let parts = [type, Self.plain(reason)] + frames.prefix(Self.framesCount).map(Self.plain)
    let hash = (try? Hashing.sha256(Array(parts.joined(separator: "\n").utf8))) ?? []
    text = Hex.encode(Array(hash.prefix(8)))
  }

  /// Without absolute addresses, offsets in a function, lines and columns. An offset in a file stays: `shop+0x1f2c` is all
  /// that is known of a frame without symbols.
  static func plain(_ text: String) -> String {
    if isFileOffset(text) { return text }
    let bytes = Array(text.utf8)
    var (plain, at) = ([UInt8](), 0)
    while at < bytes.count {
      let end = endOfVolatile(bytes, from: at)
      if end > at {
        at = end
      } else {
        plain.append(bytes[at])
        at += 1
      }
    }
    return String(decoding: plain, as: UTF8.self)
  }

  private static func isFileOffset(_ text: String) -> Bool {
    let parts = text.split(separator: "+0x", omittingEmptySubsequences: false)
    return parts.count == 2 && !parts[0].isEmpty && !parts[1].isEmpty && !parts[0].contains { " ()".contains($0) }
      && parts[1].utf8.allSatisfy(isHex)
  }

  private static func isHex(_ byte: UInt8) -> Bool {
    isDigit(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte | UInt8(ascii: " "))
  }

  private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

  /// The end of an address, an offset, a line number or a long number that begins here; else `start`.
  private static func endOfVolatile(_ bytes: [UInt8], from start: Int) -> Int {
    func end(of isPart: (UInt8) -> Bool, from first: Int) -> Int {
      bytes[first...].firstIndex { !isPart($0) } ?? bytes.count
    }
    var at = start
    switch bytes[start] {
    case UInt8(ascii: ":"):
      return end(of: isDigit, from: start + 1) > start + 1 ? end(of: isDigit, from: start + 1) : start
    case UInt8(ascii: "+"): at = end(of: { $0 == UInt8(ascii: " ") }, from: start + 1)
    default: break
    }
    if bytes[at...].starts(with: Array("0x".utf8)) {
      let last = end(of: isHex, from: at + 2)
      return last > at + 2 ? last : start
    }
    let last = end(of: isDigit, from: at)
    return last - at >= (at > start ? 1 : 4) ? last : start
  }
}
