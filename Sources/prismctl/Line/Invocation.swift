import Glibc
import PrismBase
import PrismClient
import PrismConfig
import PrismPacket
import PrismProtocol

extension Invocation {
  /// Checks the options that many commands have. - Throws: 64.
  func checkShared() throws(Failure) {
    if let output = self["--output"], !["text", "json"].contains(output) {
      throw .usage("--output: is `\(output)`, must be text or json")
    }
    guard let text = self["--watch"] else { return }
    guard let seconds = Int(text), (1...3600).contains(seconds) else {
      throw .usage("--watch: is `\(text)`, must be 1 to 3600 seconds")
    }
  }

  /// nil: the command runs once.
  var watchSeconds: Int? { self["--watch"].flatMap { Int($0) } ?? (has("--watch") ? 2 : nil) }

  var controlSocket: String { self["--control"] ?? Self.usualControlSocket }

  static var usualControlSocket: String {
    environment("PRISM_CONTROL") ?? DevelopmentFolder.running?.controlSocket ?? "/run/prism/control.sock"
  }

  /// nil: what the client library takes by itself.
  var ingestSocket: String? {
    if let path = self["--ingest"] { return path }
    return Self.environment("PRISM_INGEST") == nil ? DevelopmentFolder.running?.ingestSocket : nil
  }

  /// The one that `--namespace` names, or `prism`. - Throws: 64.
  var namespace: NamespaceName {
    get throws(Failure) {
      if let name = NamespaceName(self["--namespace"] ?? "prism") { return name }
      throw .usage("--namespace: a name is 1 to 64 of A-Z a-z 0-9 _ -, the first a letter or digit")
    }
  }

  var client: PrismClient { PrismClient(socket: ingestSocket, app: ["APP_NAME": self["--app"] ?? "prismctl"]) }

  static func environment(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

  static func configurationLoader(_ path: String) -> ConfigurationLoader {
    ConfigurationLoader(path: path, environment: ProcessEnvironment.all, identityCheck: ClientIdentity.fault)
  }
}
