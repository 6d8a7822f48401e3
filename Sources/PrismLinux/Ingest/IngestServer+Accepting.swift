import Glibc
import PrismAdmission
import PrismBase
import PrismConfig
import PrismProtocol

extension IngestServer {
  /// Connections that are taken between two looks at the sockets.
  private static let acceptsPerRound = 64

  func acceptSome() {
    for _ in 0..<Self.acceptsPerRound {
      switch listener.accept(refuse: { refuse($0, .descriptors) }) {
      case .connection(let descriptor): admit(descriptor)
      case .refused: shortage("no descriptor is left")
      case .nothing: return log.faultEnded("ingest.accept", "connections are accepted again")
      case .exhausted(let code):
        shortage(String(cString: strerror(code)))
        return pauseAccepting()
      }
    }
  }

  private func shortage(_ reason: String) {
    log.fault(
      "ingest.accept", "connections are refused; raise the limit of open files (systemd: LimitNOFILE=)",
      ["reason": reason], level: .error)
  }

  /// Not even a refusal is possible: looking again at once would spin.
  private func pauseAccepting() {
    accepting.set(reads: false, writes: false)
    Task {
      try? await time.sleep(for: .seconds(1))  // cancelled: then at once
      if state == .serving { accepting.set(reads: true, writes: false) }
    }
  }

  private func admit(_ descriptor: Int32) {
    guard let peer = PeerCredentials(of: descriptor) else {
      close(descriptor)
      return
    }
    let limits = snapshot().daemon.ingest
    let places = ConnectionPlaces(
      max: min(limits.maxConnections, connectionsMax), maxPerUser: limits.maxConnectionsPerUser)
    if let cause = places.refusal(open: connections.count, held: budget.connections(of: peer.userID)) {
      refuse(descriptor, cause)
      close(descriptor)
      return
    }
    counts.acceptedConnections += 1
    lastID += 1
    let connection = IngestConnection(id: lastID, userID: peer.userID, descriptor: SharedDescriptor(descriptor))
    guard connection.activate(in: loop) else { return shortage(String(cString: strerror(errno))) }
    connections[lastID] = connection
    budget.open(lastID, user: peer.userID)
  }

  /// Makes a connection's conversation when its first bytes come: one that only opens and closes costs little.
  func prepare(_ connection: IngestConnection) {
    guard connection.conversation == nil, let peer = ReportingPeer(of: connection.descriptor.number) else { return }
    let session = Session(rules: rules, host: facts, peer: peer, sessionID: Self.sessionID())
    connection.conversation = IngestConversation(session: session, version: version)
    connection.conversation?.isStopping = state == .stopping
  }

  /// Answers `busy` in the protocol that the client speaks, if it has begun to speak. It doesn't close.
  private func refuse(_ descriptor: Int32, _ cause: IngestCounters.Refusal) {
    counts.refusedConnections[cause, default: 0] += 1
    let refusal = Refusal(.busy, "too many connections; try again", retryMilliseconds: 1000)
    let isHTTP = SharedDescriptor.peek(descriptor)?.isASCIILetter == true
    let answer = isHTTP ? HTTPExchange.response(to: refusal) : AnswerText.refused(refusal)
    // Unread input would reset the connection when it is closed. An answer that can't be sent harms no other client.
    _ = buffer.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, min($0.count, 16_384)) }
    _ = answer.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
  }

  /// 16 hexadecimal digits of chance.
  private static func sessionID() -> String {
    let digits = String(UInt64.random(in: .min ... .max), radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }

  func takeRules() {
    let current = snapshot()
    guard current.generation != rules.generation else { return }
    rules = AdmissionRules(current)
    budget.bytesMax = rules.memoryBytesMax
  }
}
