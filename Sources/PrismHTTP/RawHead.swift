import CMicroHTTPD
import Glibc
import PrismBase

/// The bytes of a request's head, as libmicrohttpd left them in memory: each end of a line, and each sign between two parts, is
/// a NUL byte there now. The parts lie side by side only if the head has the form of RFC 9112. NUL bytes, folded lines, lines
/// without CR LF and more than one space leave other bytes between them: servers differ in how they read those.
struct RawHead {
  let method: UnsafePointer<CChar>
  let path: UnsafePointer<CChar>
  let version: UnsafePointer<CChar>
  /// From the method to the empty line, both included.
  let byteCount: Int

  /// - Parameter target: as it was before libmicrohttpd decoded it.
  /// - Returns: what is wrong; nil: nothing is.
  func fault(of connection: OpaquePointer, _ target: RequestTarget) -> String? {
    guard let lines = Self.versions.contains(String(cString: version)) ? version + 8 : nil else {
      return "the request line must be METHOD TARGET HTTP/1.1"
    }
    guard target.isSound, path == method + strlen(method) + 1, version == path + target.byteCount + 1 else {
      return "the request line has a control character, or not one space between its parts"
    }
    var cursor = HeadCursor(lines)
    withUnsafeMutablePointer(to: &cursor) { pointer in
      _ = MHD_get_connection_values(
        connection, .HEADER_KIND,
        { context, _, name, value in
          context?.assumingMemoryBound(to: HeadCursor.self).pointee.pass(name, value) == true ? .YES : .NO
        }, pointer)
    }
    guard cursor.passEnd(), cursor.passEnd(), cursor.place == method + byteCount else {
      return "a header line is folded, holds a control character, does not end with CR LF, or is no NAME: VALUE"
    }
    return nil
  }

  private static let versions = ["HTTP/1.1", "HTTP/1.0"]
}

/// Walks over the lines of a head.
private struct HeadCursor {
  private(set) var place: UnsafePointer<CChar>
  private(set) var isSound = true

  /// - Parameter place: the end of the request line.
  init(_ place: UnsafePointer<CChar>) { self.place = place }

  /// The two NUL bytes of a line's end.
  mutating func passEnd() -> Bool {
    guard isSound, place[0] == 0, place[1] == 0 else { return false }
    place += 2
    return true
  }

  /// - Returns: false: the header's name is not at the start of the line, or it holds what no header may.
  mutating func pass(_ name: UnsafePointer<CChar>?, _ value: UnsafePointer<CChar>?) -> Bool {
    isSound = passEnd() && name == place && passText(of: name, value)
    return isSound
  }

  private mutating func passText(of name: UnsafePointer<CChar>?, _ value: UnsafePointer<CChar>?) -> Bool {
    guard let name, let value, name[0] != 0, Self.holds(name, only: \.isHTTPToken) else { return false }
    // libmicrohttpd skips blanks in front of the value.
    let blanks = UnsafeRawBufferPointer(start: name + strlen(name) + 1, count: value - (name + strlen(name) + 1))
    guard blanks.allSatisfy({ $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }) else { return false }
    place = value + strlen(value)
    return Self.holds(value) { byte in byte >= UInt8(ascii: " ") && byte != Self.delete || byte == UInt8(ascii: "\t") }
  }

  private static let delete: UInt8 = 0x7F

  private static func holds(_ text: UnsafePointer<CChar>, only isAllowed: (UInt8) -> Bool) -> Bool {
    UnsafeRawBufferPointer(start: text, count: strlen(text)).allSatisfy(isAllowed)
  }
}
