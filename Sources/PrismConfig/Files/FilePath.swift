import Glibc

/// Paths as text; nothing here touches a disk, but for the working folder.
enum FilePath {
  /// `/etc/prism` of `/etc/prism/prismd.yaml`; `.` for a bare name.
  static func folder(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }

  static func name(of path: String) -> String {
    path.lastIndex(of: "/").map { String(path[path.index(after: $0)...]) } ?? path
  }

  static func joined(_ folder: String, _ name: String) -> String {
    if name.hasPrefix("/") || folder == "." { return name }
    return folder.hasSuffix("/") ? folder + name : folder + "/" + name
  }

  /// From the root. A daemon may change its working folder, its files stay where they are.
  static func absolute(_ path: String) -> String {
    guard !path.hasPrefix("/"), let working = getcwd(nil, 0) else { return path }
    defer { free(working) }
    return path == "." ? String(cString: working) : joined(String(cString: working), path)
  }
}
