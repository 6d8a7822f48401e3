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
    var option = options
    while let keyword = option.pointee.keyword {
      if String(cString: keyword) == "password", option.pointee.val != nil {
        throw Fault(
          description:
            "holds a password; put it into a file of the form host:port:database:user:password, of mode 0600, "
            + "and name it in storePasswordFile or PGPASSFILE")
      }
      option += 1
    }
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
    return before + [("dbname", uri)] + password + [("client_encoding", "UTF8")]
  }
}
