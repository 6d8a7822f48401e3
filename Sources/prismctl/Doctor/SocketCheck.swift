import Glibc
import PrismControl
import PrismProtocol

/// Whether clients can get at the sockets.
enum SocketCheck {
  /// - Parameter mode: that the ingest socket is configured to have; nil: unknown.
  /// - Parameter controlMode: the same of the control socket.
  static func findings(ingest: String?, mode: UInt32?, control: String?, controlMode: UInt32 = 0o660) -> [Finding] {
    [
      examine("ingest socket", ingest ?? "/run/prism/ingest.sock", mode: mode ?? 0o666),
      examine("control socket", control ?? "/run/prism/control.sock", mode: controlMode),
    ]
  }

  private static func examine(_ check: String, _ path: String, mode: UInt32) -> Finding {
    var facts = stat()
    guard stat(path, &facts) == 0 else {
      return Finding(
        check, .fault, "\(path): \(Files.reason())",
        advice: "start prismd or prismd.socket; are you looking at the configuration that it runs with (--config)?")
    }
    guard facts.st_mode & S_IFMT == S_IFSOCK else {
      return Finding(check, .fault, "\(path) is no socket", advice: "move it away and restart prismd")
    }
    let found = FileModes.text(facts.st_mode)
    guard facts.st_mode & 0o777 == mode else {
      return Finding(
        check, .warning, "\(path) has mode \(found), not \(FileModes.text(mode)) as configured",
        advice: "restart prismd: it gives its sockets their modes when it starts")
    }
    if mode & 0o002 != 0, let folder = closedFolder(above: path) {
      return Finding(
        check, .fault, "\(path) is for everyone, but \(folder) is closed to other users",
        advice: "chmod o+x \(folder), or RuntimeDirectoryMode=0755 in the unit")
    }
    return Finding(check, .ok, "\(path) has mode \(found)")
  }

  /// The first folder on the way that others can't pass.
  private static func closedFolder(above path: String) -> String? {
    var folder = ""
    for part in path.split(separator: "/").dropLast() {
      folder += "/" + part
      var facts = stat()
      if stat(folder, &facts) == 0 && facts.st_mode & 0o001 == 0 { return folder }
    }
    return nil
  }
}
