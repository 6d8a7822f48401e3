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

  /// The same path without empty and `.` parts, and without `..` where a part stands before it: for comparing.
  static func plain(_ path: String) -> String {
    var parts: [Substring] = []
    for part in path.split(separator: "/") where part != "." {
      if part == "..", let last = parts.last, last != ".." { parts.removeLast() } else { parts.append(part) }
    }
    return (path.hasPrefix("/") ? "/" : "") + parts.joined(separator: "/")
  }

  /// The name of a namespace's file without its ending; nil for other files.
  static func namespaceStem(_ name: String) -> String? {
    [".yaml", ".yml", ".json"].first { name.hasSuffix($0) }.map { String(name.dropLast($0.count)) }
  }

  /// Why a file is not read though its name looks like a namespace's; nil for all others.
  static func objection(toEndingOf name: String) -> String? {
    guard namespaceStem(name) == nil, namespaceStem(name.lowercased()) != nil else { return nil }
    let ending = name[name.lastIndex(of: ".")!...]
    return "ends in \(ending), and is not read; rename it to end in \(ending.lowercased())"
  }

  /// From the root. A daemon may change its working folder, its files stay where they are.
  static func absolute(_ path: String) -> String {
    guard !path.hasPrefix("/"), let working = getcwd(nil, 0) else { return path }
    defer { free(working) }
    return path == "." ? String(cString: working) : joined(String(cString: working), path)
  }
}
