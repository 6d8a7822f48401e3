import Glibc

/// Reads symbolic links, those of `/proc` among them.
public enum SymbolicLink {
  private static let targetBytesMax = 4096

  /// - Returns: nil where there is no link, or the process may not read it.
  public static func target(of path: String) -> String? {
    var buffer = [CChar](repeating: 0, count: targetBytesMax)
    let count = readlink(path, &buffer, buffer.count)
    return count > 0 ? String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self) : nil
  }

  /// The executable of this process; nil without `/proc`.
  public static var ownExecutable: String? { target(of: "/proc/self/exe") }
}
