import PrismBase
import PrismHTTP
import PrismPacket
import PrismProtocol

/// The rights of senders and readers: their bearer tokens, and the names that the collector may be asked by.
struct CollectorAccess: Sendable {
  /// nil: senders need no token.
  let senders: TokenAuthenticator?
  /// nil: nothing is read but over the Unix socket.
  private let readers: TokenAuthenticator?
  private let hosts: HostCheck

  init(_ options: CollectorOptions, time: any TimeSource, log: Logger) {
    senders = options.tokenFile.map { TokenAuthenticator(path: $0, time: time, log: log) }
    readers = options.readerTokenFile.map { TokenAuthenticator(path: $0, time: time, log: log) }
    hosts = HostCheck(names: options.readerHosts)
  }

  /// - Throws: 401 without a good token.
  func checkSender(_ request: HTTPRequest) async throws(CollectorRefusal) {
    guard let senders, await !senders.accepts(request.header("authorization")) else { return }
    throw CollectorRefusal(401, code: .token, "the bearer token is missing or wrong")
  }

  /// The verdict of a probe on a sender's token.
  func verdict(on request: HTTPRequest) async -> ProbeAnswer.Verdict {
    guard let senders else { return .notAsked }
    guard let given = request.header("authorization") else { return .missing }
    return await senders.accepts(given) ? .ok : .wrong
  }

  /// - Throws: 403 for a Host that is no name of the collector, 401 without a reader's token.
  func checkReader(_ request: HTTPRequest) async throws(CollectorRefusal) {
    guard hosts.allows(request.header("host")) else {
      throw CollectorRefusal(
        403, "the Host is no name of this collector; ask by its address, or list the name under reader.hosts")
    }
    guard let readers, await readers.accepts(request.header("authorization")) else {
      throw CollectorRefusal(401, code: .token, "the reader's bearer token is missing or wrong")
    }
  }

  /// - Throws: 403 if the request is not from this machine, or asks by another name.
  func checkLocal(_ request: HTTPRequest) throws(CollectorRefusal) {
    guard request.peer.isLocal, hosts.isLocal(request.header("host")) else {
      throw CollectorRefusal(403, "metrics are shown to this machine only, and at the reader's address")
    }
  }
}
