import Glibc
import PrismAdmission
import PrismBase
import PrismConfig
import PrismInputs
import PrismProtocol

extension IngestServer {
  /// Connections that are taken between two looks at the sockets.
  private static let acceptsPerRound = 64

  func acceptReady(_ ready: [Int]) {
    if ready.contains(Self.listenerID) { acceptSome(from: listener, .reports) }
    guard !entrances.open.isEmpty else { return }
    for id in ready {
      if let open = entrances.open[id], !open.receive() { acceptSome(from: open.listener, open.entrance) }
    }
  }

  private func acceptSome(from listener: any ConnectionListener, _ entrance: Entrance) {
    for _ in 0..<Self.acceptsPerRound {
      switch listener.accept(refuse: { refuse($0, entrance, .descriptors) }) {
      case .connection(let descriptor): admit(descriptor, entrance)
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
    watchEntrances(reads: false)
    Task {
      try? await time.sleep(for: .seconds(1))  // cancelled: then at once
      if state == .serving { watchEntrances(reads: true) }
    }
  }

  private func admit(_ descriptor: Int32, _ entrance: Entrance) {
    // Syslog has no answers: a program sends its message and goes. Then the message has no user.
    guard let userID = entrance.userID(of: descriptor) ?? (entrance.isSyslog ? .max : nil) else {
      if entrance.isTCP { counts.refusedConnections[.unknownUser, default: 0] += 1 }
      close(descriptor)
      return
    }
    let limits = snapshot().daemon.ingest
    let places = ConnectionPlaces(
      max: min(limits.maxConnections, connectionsMax), maxPerUser: limits.maxConnectionsPerUser)
    if let cause = places.refusal(open: connections.count, held: budget.connections(of: userID)) {
      refuse(descriptor, entrance, cause)
      close(descriptor)
      return
    }
    counts.acceptedConnections += 1
    lastID += 1
    let connection = IngestConnection(
      id: lastID, entrance: entrance, userID: userID, descriptor: SharedDescriptor(descriptor))
    connection.routes = HTTPRoutes(input: otherInputs.otlp, isAlone: entrance == .otlp)
    guard connection.activate(in: loop) else { return shortage(String(cString: strerror(errno))) }
    if let stream = otherInputs.makeStream(entrance) { connection.speak(stream) }
    connections[lastID] = connection
    budget.open(lastID, user: userID)
    if entrance.isForward { advance(connection) }  // the first word may be ours
  }

  /// Makes a connection's conversation when its first bytes come: one that only opens and closes costs little.
  func prepare(_ connection: IngestConnection) {
    guard connection.conversation == nil, let peer = connection.peer else { return }
    let session = Session(rules: rules, host: facts, peer: peer, sessionID: .randomSessionID)
    connection.conversation = InPlace(IngestConversation(session: session, version: version, places: places))
    connection.conversation?.value.isStopping = state == .stopping
  }

  /// Answers `busy` in the protocol that the client speaks, if it has begun to speak. It doesn't close.
  private func refuse(_ descriptor: Int32, _ entrance: Entrance, _ cause: IngestCounters.Refusal) {
    counts.refusedConnections[cause, default: 0] += 1
    let refusal = Refusal(.busy, "too many connections; try again", retryMilliseconds: 1000)
    if entrance.isForward || entrance.isSyslog { return }  // no answer is known there
    let isHTTP = entrance == .otlp || SharedDescriptor.peek(descriptor)?.isASCIILetter == true
    let answer = isHTTP ? HTTPAnswer.render(InputAnswer(refusal), keepAlive: false) : AnswerText.refused(refusal)
    // Unread input would reset the connection when it is closed. An answer that can't be sent harms no other client.
    _ = buffer.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, min($0.count, 16_384)) }
    _ = answer.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
  }

  func takeRules() {
    let current = snapshot()
    guard current.generation != rules.generation else { return }
    rules = AdmissionRules(current, tools: rules.tools, files: rules.files)
    budget.bytesMax = rules.memoryBytesMax
  }
}

extension IngestConnection {
  /// nil: it is gone. Over TCP the user was found when the connection came, and stays.
  fileprivate var peer: ReportingPeer? {
    guard entrance.isTCP else { return ReportingPeer(of: descriptor.number) }
    return ReportingPeer(userID: userID == .max ? nil : userID, groupIDs: [], processID: 0)
  }
}

extension String {
  /// 16 hexadecimal digits of chance.
  fileprivate static var randomSessionID: String {
    let digits = String(UInt64.random(in: .min ... .max), radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }
}
