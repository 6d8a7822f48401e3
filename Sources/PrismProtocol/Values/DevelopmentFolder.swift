import Glibc
import PrismBase

/// The folder of a `prismd --dev` that this user runs. It is found by a symbolic link of this user's, so that `prismctl`
/// needs neither options nor variables.
public struct DevelopmentFolder: Sendable, Equatable {
  public let path: String

  public init(_ path: String) { self.path = path }

  /// Where its `prismd` listens.
  public var controlSocket: String { path + "/control.sock" }
  /// Where its `prismd` takes reports.
  public var ingestSocket: String { path + "/ingest.sock" }
  /// The daemon's own file.
  public var configuration: String { path + "/prismd.yaml" }

  /// In `$XDG_RUNTIME_DIR`, else in /tmp.
  public static var link: String {
    let folder = getenv("XDG_RUNTIME_DIR").map { String(cString: $0) } ?? ""
    return folder.isEmpty ? "/tmp/prism-dev-\(getuid())" : folder + "/prism-dev"
  }

  /// nil if no such daemon runs. A link of another user is ignored, since /tmp is open to all users.
  public static var running: DevelopmentFolder? {
    var facts = stat()
    guard lstat(link, &facts) == 0, facts.st_mode & S_IFMT == S_IFLNK, facts.st_uid == getuid() else { return nil }
    guard let folder = SymbolicLink.target(of: link).map({ DevelopmentFolder($0) }) else { return nil }
    guard stat(folder.controlSocket, &facts) == 0, facts.st_uid == getuid(), folder.isListening else { return nil }
    return folder
  }

  /// A killed daemon leaves its socket behind.
  private var isListening: Bool {
    guard let descriptor = UnixAddress(path: controlSocket)?.connect(), descriptor >= 0 else { return false }
    close(descriptor)
    return true
  }
}
