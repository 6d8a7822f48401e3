import Foundation
import Glibc

/// A pgbouncer in transaction mode before a PostgreSQL, on a Unix socket. The kernel kills it when the tests' process ends.
public final class PgBouncer: Sendable {
  private static let port = 6432
  private static let path = "/usr/sbin/pgbouncer"

  private let folder = TemporaryFolder()
  private let program: StartedProgram

  /// nil: the machine has no pgbouncer.
  public static var isInstalled: Bool { access(path, X_OK) == 0 }

  /// - Parameter sessions: of PostgreSQL, which all its clients share.
  public init(_ server: PostgreSQLServer, sessions: Int) throws {
    chmod(folder.path, 0o711)
    mkdir(folder("run"), 0o700)
    let lines = """
      [databases]
      * = host=\(server.socketFolder)
      [pgbouncer]
      listen_port = \(Self.port)
      unix_socket_dir = \(folder("run"))
      auth_type = trust
      auth_file = \(folder("run/users"))
      pool_mode = transaction
      default_pool_size = \(sessions)
      max_client_conn = 200
      logfile = \(folder("run/log"))

      """
    try lines.write(toFile: folder("run/ini"), atomically: false, encoding: .utf8)
    try "\"prism\" \"\"\n".write(toFile: folder("run/users"), atomically: false, encoding: .utf8)
    var command = [Self.path, "-q", folder("run/ini")]
    if getuid() == 0 {
      for path in ["run", "run/ini", "run/users"] { chown(folder(path), 65534, 65534) }
      command = ["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--pdeathsig=KILL"] + command
    }
    let null = open("/dev/null", O_RDWR | O_CLOEXEC)
    defer { close(null) }
    program = try StartedProgram(command[0], Array(command.dropFirst()), .init(output: null, error: null))
  }

  deinit { program.signal(SIGKILL) }

  public func uri(_ database: String) -> String {
    "postgresql:///\(database)?host=\(folder("run"))&port=\(Self.port)&user=prism"
  }
}
