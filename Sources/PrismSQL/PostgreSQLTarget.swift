import CPostgreSQL
import Glibc

/// Which database to connect to.
public struct PostgreSQLTarget: Sendable, Equatable {
  /// Why a text is no target.
  public struct Fault: Error, Equatable, CustomStringConvertible {
    /// The fault, without a password.
    public let description: String
  }

  /// A connection URI (PostgreSQL's manual, "Connection URIs"), without a password.
  public let uri: String
  /// A file of passwords, of the form that PostgreSQL's manual describes under "The Password File"; nil: `PGPASSFILE`, or
  /// `~/.pgpass`.
  public let passwordFile: String?
  /// The `sslmode` for a server that is reached over a network, of the URI or PGSSLMODE; without one it is `verify-full`. nil: every
  /// server is on this machine.
  private let networkTLS: String?
  private static let verifiedTLS = "verify-full"

  /// - Throws: it is no connection URI, or it holds a password, which others could read in the list of processes.
  public init(uri: String, passwordFile: String? = nil) throws(Fault) {
    (self.uri, self.passwordFile) = (uri, passwordFile)
    guard Self.isURI(uri) else {
      throw Fault(description: "must begin with postgresql://, as postgresql://prism@db1,db2/prism")
    }
    var message: UnsafeMutablePointer<CChar>?
    guard let options = PQconninfoParse(uri, &message) else {
      PQfreemem(message)  // it may quote a password
      throw Fault(description: "is no connection URI; write postgresql://USER@HOST[,HOST…]/DATABASE[?PARAMETER=VALUE…]")
    }
    defer { PQconninfoFree(options) }
    var given: [String: String] = [:]
    var option = options
    while let keyword = option.pointee.keyword {
      if let value = option.pointee.val { given[String(cString: keyword)] = String(cString: value) }
      option += 1
    }
    guard given["password"] == nil else {
      throw Fault(
        description:
          "holds a password; put it into a file of the form host:port:database:user:password, of mode 0600, "
          + "and name it in storePasswordFile, an output's passwordFile, or PGPASSFILE")
    }
    let environment = { (name: String) in getenv(name).map { String(cString: $0) } }
    let hosts = given["hostaddr"] ?? given["host"] ?? environment("PGHOSTADDR") ?? environment("PGHOST") ?? ""
    let isLocal = hosts.split(separator: ",").allSatisfy(Self.isLocal)
    networkTLS = isLocal ? nil : given["sslmode"] ?? environment("PGSSLMODE") ?? Self.verifiedTLS
  }

  /// A Unix socket, or an address of this machine.
  private static func isLocal(_ host: Substring) -> Bool {
    host.hasPrefix("/") || host.hasPrefix("@") || host == "localhost" || host == "::1" || host.hasPrefix("127.")
  }

  /// The words for the operator of a connection whose server is not verified; nil: it is verified, or on this machine.
  public var tlsWarning: String? {
    guard let networkTLS, networkTLS != Self.verifiedTLS else { return nil }
    return "the database is reached over a network with sslmode=\(networkTLS), which does not verify its server; "
      + "use sslmode=\(Self.verifiedTLS) with sslrootcert=FILE"
  }

  /// Whether the text begins like a connection URI.
  public static func isURI(_ text: String) -> Bool { text.hasPrefix("postgresql://") || text.hasPrefix("postgres://") }

  /// Keywords and values for libpq. A parameter of the URI wins over those before it.
  var parameters: [(keyword: String, value: String)] {
    let before = [
      // A primary that was demoted, or a standby, stores nothing: libpq goes on to the next host.
      ("target_session_attrs", "read-write"), ("connect_timeout", "5"),
      ("keepalives_idle", "10"), ("keepalives_interval", "5"), ("keepalives_count", "3"),
      ("application_name", "prism-collector"),
    ]
    let password = passwordFile.map { [("passfile", $0)] } ?? []
    let tls = networkTLS.map { [("sslmode", $0)] } ?? []
    return before + tls + [("dbname", uri)] + password + [("client_encoding", "UTF8")]
  }
}
