import Glibc
import PrismAdmission
import PrismBase
import PrismControl
import PrismProtocol

extension IngestServer {
  /// Cost units between two looks at the sockets: a client that comes new is seen soon.
  private static let roundCost = WorkOrder.userTurn
  /// Connections that wait for memory and are looked at in one round.
  private static let resumesPerRound = 64

  /// One round: new connections, then turns of those that have something to do, up to `roundCost`. A hang-up while
  /// reading is paused is ignored: what was received is committed all the same.
  /// - Returns: whether there is more to do.
  func serve(_ ready: [Int]) -> Bool {
    takeRules()
    for id in ready {
      guard let connection = connections[id] else { continue }
      if connection.wantsToRead || connection.wantsToWrite { work.add(id, user: connection.userID) }
    }
    if state == .serving { acceptReady(ready) }  // a job may have stopped it since
    var cost = 0
    while cost < Self.roundCost, let (id, credit) = work.next() {
      if let connection = connections[id] { cost += turn(connection, credit) } else { cost += groupTurn(id, credit) }
    }
    resumeReading()
    commit()
    return !work.isEmpty
  }

  /// Reads from a connection, takes what was read, and sends.
  /// - Returns: the cost.
  func turn(_ connection: IngestConnection, _ credit: Int) -> Int {
    var turn = WorkTurn(
      credit: max(1, credit - WorkTurn.Cost.turn), unreadBytesMax: Limits.unreadBytesMax - connection.unsentBytes)
    let before = turn.credit
    let hasMore = connection.pauses.isEmpty && takeInput(of: connection, within: &turn)
    let cost = before - turn.credit + WorkTurn.Cost.turn
    work.endTurn(connection.id, user: connection.userID, cost: cost, waits: hasMore)
    advance(connection)
    if let request = connection.takeRequest(rules) { hand(request, of: connection) }
    return cost
  }

  /// - Returns: whether more is there to be read.
  private func takeInput(of connection: IngestConnection, within turn: inout WorkTurn) -> Bool {
    guard !connection.isGone else { return false }
    guard budget.mayWork(connection.id, requestBytes: connection.requestBytes) else {
      waitForBudget(connection)
      return false
    }
    let now = facts.read(time)
    if connection.hasInput {
      makeReady(connection)
      connection.consumeHeld(within: &turn, unixMilliseconds: now)
      return false
    }
    let count = connection.descriptor.read(into: &buffer)
    if count < 0 && errno == EAGAIN { return false }
    if count != 0 { connection.hear(isReset: count < 0) }
    guard count > 0 else {
      connection.endInput(unixMilliseconds: now)
      return false
    }
    prepare(connection)
    makeReady(connection)
    var chunk: [UInt8] = []
    swap(&chunk, &buffer)  // so that nothing else can touch it meanwhile, and nothing is copied
    connection.consume(chunk.span.extracting(0..<count), within: &turn, unixMilliseconds: now)
    swap(&chunk, &buffer)
    return count == buffer.count
  }

  private func makeReady(_ connection: IngestConnection) {
    connection.conversation?.value.take(rules)
    connection.conversation?.value.take(facts.clock)
    connection.conversation?.value.isFollowed = feed.hasFollowers
  }

  private func waitForBudget(_ connection: IngestConnection) {
    counts.memoryPauses += 1
    connection.pauses.insert(.budget)
    guard !connection.isWaitingForBudget else { return }
    connection.isWaitingForBudget = true
    waitingForBudget.append(connection.id)
  }

  /// Lets connections go on that there is memory for now, the longest waiting first; their turns are reserved.
  private func resumeReading() {
    let waiting = waitingForBudget.prefix(Self.resumesPerRound)
    waitingForBudget.removeFirst(waiting.count)
    for id in waiting {
      if roomWaiters[id] != nil { giveRoom(id) }
      guard let connection = connections[id], !connection.isGone else { continue }
      guard budget.mayWork(id, requestBytes: connection.requestBytes) else {
        waitingForBudget.append(id)
        continue
      }
      connection.isWaitingForBudget = false
      connection.pauses.remove(.budget)
      watch(connection)
      goOn(connection)
    }
  }

  /// Schedules a connection whose input was read already: its socket does not report that input again.
  private func goOn(_ connection: IngestConnection) {
    guard connection.hasInput, connection.pauses.isEmpty, !connection.isGone else { return }
    work.add(connection.id, user: connection.userID)
  }

  /// After anything happened to a connection: its answers, its reports, its deadline, its end. Call `endRound` after the
  /// last.
  func advance(_ connection: IngestConnection) {
    let wasBehind = connection.pauses.contains(.output)
    connection.send(now: time.uptime, timeout: Self.stallMax)
    let isBehind = connection.pauses.contains(.output) && connection.unsentBytes > 0
    if !wasBehind && isBehind { counts.answerPauses += 1 }
    if connection.isGone, !connection.pauses.contains(.ended) {
      connection.endInput(unixMilliseconds: time.unixMilliseconds)
    }
    if let program = connection.conversation?.value.takeProgram() {
      sessions.set(program, of: connection.id, now: time.uptime)
    }
    if let tally = connection.conversation?.value.takeTally() { counts.tally.add(tally) }
    if connection.conversation?.value.isFollowed == true { tell(connection.conversation?.value.takeRefused() ?? []) }
    if let foreign = connection.foreign, !connection.isForeignTold { tell(foreign, of: connection) }
    account(connection)
    if connection.conversation?.value.batchBytes ?? 0 > 0, !connection.isUnsealed {
      connection.isUnsealed = true
      unsealed.append(connection.id)
    }
    watch(connection)
    goOn(connection)
    closeIfDone(connection)
  }

  /// After connections were advanced: the next commit may begin, and what is left to do is done soon.
  func endRound() {
    resumeReading()
    commit()
    if !work.isEmpty { loop.goOnSoon() }
  }

  /// Shows refused reports to those who follow the feed.
  func tell(_ refused: [TailReport]) {
    if !refused.isEmpty { feed.publish(refused, now: time.unixMilliseconds) }
  }

  private func account(_ connection: IngestConnection) {
    let batchBytes = connection.conversation?.value.batchBytes ?? 0
    budget.set(
      connection.id, bytes: connection.heldBytes + batchBytes, batchBytes: batchBytes,
      requestBytes: connection.requestBytes)
  }

  private func closeIfDone(_ connection: IngestConnection) {
    guard connection.isGone || connection.isSettled else { return }
    let isOver = connection.pauses.contains(.ended) || state == .stopping
    if connection.isHanded, !(connection.isGone && state == .stopping) { return }  // its memory is in use
    if connection.isGone ? connection.conversation?.value.isSettled != false : isOver { return remove(connection) }
    if connection.mustClose && !connection.isWriteShut {
      connection.shutWriting()  // and what still comes is read away, or closing would take the answer from the client
      watch(connection)
    }
  }

  /// Closes a connection before its client does; what was taken of it is committed. Call `endRound` after the last.
  func abandon(_ connection: IngestConnection, because cause: IngestCounters.Closure) {
    guard !connection.isGone else { return }
    counts.closedConnections[cause, default: 0] += 1
    connection.close()
    advance(connection)
  }

  private func remove(_ connection: IngestConnection) {
    if let refused = connection.refusedRequest { count(refused) }
    connection.close()
    budget.close(connection.id)
    work.remove(connection.id, user: connection.userID)
    connections[connection.id] = nil
    sessions.end(connection.id, now: time.uptime)
    endStopIfEmpty()
  }
}
