import Glibc

/// Small files of the kernel's file systems.
enum TextFile {
  /// nil when it isn't there, can't be read, or is empty.
  static func read(_ path: String, bytesMax: Int) -> String? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var buffer = [UInt8](repeating: 0, count: bytesMax)
    let count = buffer.withUnsafeMutableBytes { Glibc.read(descriptor, $0.baseAddress, $0.count) }
    return count > 0 ? String(decoding: buffer[..<count], as: UTF8.self) : nil
  }

  /// Without white space and zero bytes at both ends.
  static func trimmed(_ text: String) -> String {
    let isBlank: (Unicode.Scalar) -> Bool = { $0.value <= 0x20 }
    let scalars = text.unicodeScalars.drop(while: isBlank)
    return String(String.UnicodeScalarView(scalars.reversed().drop(while: isBlank).reversed()))
  }
}
