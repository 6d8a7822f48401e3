import PrismProtocol

/// The keys under `commands` of the daemon's file. Remote configuration can't set them.
enum CommandKeys {
  private typealias Key = ConfigurationKey<DaemonConfiguration>

  static let keys: [ConfigurationKey<DaemonConfiguration>] = [
    Key(
      "commands.allow", .set(of: .choice, "a list of flush, doctor, log, collect, run, requeue and drop", atLeast: 0),
      at: \.commands.allow, "the commands that a server may send to this device"),
    Key(
      "commands.files", .list(of: .commandFile, "a list of absolute paths, with * and ? in names"),
      at: \.commands.files, "the files that `collect` may take; `*` is any text within a name"),
    Key(
      "commands.units", .list(of: .commandUnit, "a list of names"), at: \.commands.units,
      "the names of the units `prism-command@NAME.service` that `run` may start"),
    Key(
      "commands.runSocket", .path(bytesMax: 107), at: \.commands.runSocket,
      "the socket that starts them, which `prism-run.socket` opens"),
  ]
}

extension ValueForm where Value == String {
  static var commandFile: Self {
    string("an absolute path of at most 4095 bytes without empty parts, `.` and `..`") { path in
      let parts = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
      return path.hasPrefix("/") && path.utf8.count <= 4095 && parts.allSatisfy { !["", ".", ".."].contains($0) }
    }
  }

  static var commandUnit: Self {
    string("1 to 64 of A-Z a-z 0-9 _ -, the first a letter or digit") { NamespaceName($0) != nil }
  }
}
