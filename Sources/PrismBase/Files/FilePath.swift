import Glibc

/// Paths as text. Nothing here reads a disk, except for the working folder.
public enum FilePath {
  /// `/etc/prism` of `/etc/prism/prismd.yaml`; `.` for a bare name.
  public static func folder(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }

  /// `FOLDER/NAME`; an absolute name as it is.
  public static func joined(_ folder: String, _ name: String) -> String {
    if name.hasPrefix("/") || folder == "." { return name }
    return folder.hasSuffix("/") ? folder + name : folder + "/" + name
  }

  /// The same path without empty and `.` parts, and without `..` behind a part: for comparing.
  public static func plain(_ path: String) -> String {
    var parts: [Substring] = []
    for part in path.split(separator: "/") where part != "." {
      if part == "..", let last = parts.last, last != ".." { parts.removeLast() } else { parts.append(part) }
    }
    return (path.hasPrefix("/") ? "/" : "") + parts.joined(separator: "/")
  }

  /// From the root. A daemon may change its working folder, its files stay where they are.
  public static func absolute(_ path: String) -> String {
    guard !path.hasPrefix("/"), let working = getcwd(nil, 0) else { return path }
    defer { free(working) }
    return path == "." ? String(cString: working) : joined(String(cString: working), path)
  }
}
