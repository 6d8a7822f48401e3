import Glibc
public import PrismAdmission
import PrismBase
public import PrismConfig
import PrismProtocol

/// Other inputs than the ingest socket's own protocols, on connections of this server.
extension IngestServer {
  /// Listens where `daemon` says from now on, beside the ingest socket. Connections that are there stay.
  /// - Throws: the first address that can't be listened on; then it listens where it did.
  public func listen(_ daemon: DaemonConfiguration) throws(EntranceFault) {
    guard state != .stopping, state != .stopped else { return }
    let wanted = Entrance.addresses(daemon)
    var opened: [OpenEntrance] = []
    for (entrance, address) in wanted.sorted(by: { $0.key.key < $1.key.key }) where !isOpen(entrance, address) {
      do throws(SocketError) { opened.append(try open(entrance, address, daemon)) } catch {
        for open in opened { open.close() }
        throw EntranceFault(key: entrance.key, reason: error)
      }
    }
    for (id, open) in entrances where wanted[open.entrance] != open.listener.path { endEntrance(id) }
    for open in opened { add(open) }
  }

  private func isOpen(_ entrance: Entrance, _ address: String) -> Bool {
    entrances.values.contains { $0.entrance == entrance && $0.listener.path == address }
  }

  private func open(
    _ entrance: Entrance, _ address: String, _ daemon: DaemonConfiguration
  ) throws(SocketError) -> OpenEntrance {
    let listener = try entrance.listen(on: address, daemon)
    lastID += 1
    guard let watch = loop.watch(listener.descriptor, id: lastID, reads: false) else {
      let code = errno
      listener.close()
      throw .system("watch", path: address, errno: code)
    }
    return OpenEntrance(id: lastID, entrance: entrance, listener: listener, watch: watch)
  }

  private func add(_ open: OpenEntrance) {
    entrances[open.id] = open
    if state == .serving { entrances[open.id]?.watch.set(reads: true, writes: false) }
    log.info("an input listens", ["key": open.entrance.key, "address": open.listener.path])
  }

  func endEntrance(_ id: Int) { entrances.removeValue(forKey: id)?.close() }

  /// Accepts connections at all entrances, or pauses them for a while.
  func watchEntrances(reads: Bool) {
    accepting.set(reads: reads, writes: false)
    for id in entrances.keys { entrances[id]?.watch.set(reads: reads, writes: false) }
  }

  /// The port of an entrance over TCP; nil if it is not open.
  func port(of entrance: Entrance) -> UInt16? {
    entrances.values.first { $0.entrance == entrance }.flatMap { ($0.listener as? TCPListener)?.port }
  }
}

// MARK: - Requests

extension IngestServer {
  /// Counts a request of an input that has no connection here.
  public func count(_ result: IngestCounters.InputResult) { counts.inputRequests[log.told(result), default: 0] += 1 }

  /// Has another input answer a request; the connection waits for it.
  func hand(_ request: InputRequest, of connection: IngestConnection) {
    guard let peer = connection.conversation?.value.session.peer else { return }
    let (id, sink, http, stream) = (connection.id, RequestSink(server: self), otherInputs.http, otherInputs.stream)
    let isForward = connection.entrance.isForward
    Task {
      if isForward, let stream {
        answered(id, await stream.answer(request, from: peer, to: sink), input: stream.name)
      } else if let http {
        answered(id, await http.answer(request, from: peer, to: sink), input: http.name(of: request))
      }
    }
  }

  /// Counts a client that speaks another protocol, and names it to those who follow.
  func tell(_ foreign: ForeignProtocol, of connection: IngestConnection) {
    connection.isForeignTold = true
    counts.foreignProtocols[foreign, default: 0] += 1
    guard feed.hasFollowers else { return }
    let name = ReportName(namespace: nil, type: nil, reportID: nil)
    var event = ReportEvent(time: time.unixMilliseconds, outcome: .refused(foreign.refusal.code), name: name)
    event.foreign = foreign.title
    event.peer = connection.conversation?.value.session.peer.title ?? "user \(connection.userID)"
    feed.publish([event])
  }

  private func answered(_ id: Int, _ answer: InputAnswer, input: String) {
    count(.init(input: input, status: answer.status))
    guard let connection = connections[id] else { return }
    connection.finish(answer)
    advance(connection)
    endRound()
  }
}

extension Logger {
  /// Names a limit that a request met.
  fileprivate func told(_ result: IngestCounters.InputResult) -> IngestCounters.InputResult {
    if result.status == 413 {
      fault("ingest.limit.\(result.input)", "requests are larger than is taken", ["input": result.input])
    }
    return result
  }

  /// Names types that were not taken.
  func told(_ tally: IngestTally) -> IngestTally {
    if tally.otherTypes > 0 {
      fault("ingest.types", "reports become the type `other`: their own is no name, or one more than a pattern takes")
    }
    return tally
  }
}

/// Takes the groups of a request whose memory is charged to its connection.
private struct RequestSink: SubmissionSink {
  let server: IngestServer

  func submit(
    _ group: SubmissionGroup, room: MemoryRoom?, whenCommitted: @escaping @Sendable ([SubmissionAnswer]) -> Void
  ) async {
    let own = await server.openRoom(userID: group.userID)
    await server.submit(group, room: room ?? own, whenCommitted: whenCommitted)
  }

  func reserve(bytes: Int, userID: UInt32) async -> MemoryRoom? { await server.reserve(bytes: bytes, userID: userID) }
  func note(_ key: String, of namespace: NamespaceName) async -> [UInt8]? { await server.note(key, of: namespace) }
}
