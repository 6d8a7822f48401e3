public import PrismAdmission
import PrismBase
import PrismControl
public import PrismProtocol

/// A group of another input, until its commit.
struct PendingGroup {
  var group: SubmittedGroup
  let whenCommitted: @Sendable ([SubmissionAnswer]) -> Void
}

/// A task that waits for memory.
struct RoomWaiter {
  let bytes: Int
  let continuation: CheckedContinuation<Bool, Never>
}

/// Reports of other inputs. A group is to the memory, the turns and the commits what a connection is; so both share them
/// by the same rules.
extension IngestServer: SubmissionSink {
  /// Takes a group to the next commit. Returns once the group has its place; `whenCommitted` is called after the commit.
  public func submit(
    _ group: SubmissionGroup, room: MemoryRoom?, whenCommitted: @escaping @Sendable ([SubmissionAnswer]) -> Void
  ) async {
    let bytesMax = rules.requestBytesMax
    guard room != nil || group.isReserved || group.memoryBytes <= bytesMax else {
      return refuse(group, Self.tooLarge(group, bytesMax: bytesMax), whenCommitted)
    }
    guard let id = await holding(group, room) else { return refuse(group, .stopping, whenCommitted) }
    guard state == .serving else {
      release(id)
      return refuse(group, .stopping, whenCommitted)
    }
    var submitted = SubmittedGroup(group)
    submitted.isFollowed = feed.hasFollowers
    groups[id] = PendingGroup(group: submitted, whenCommitted: whenCommitted)
    work.add(id, user: group.userID)
    loop.goOnSoon()
  }

  /// Reserves memory for a group. - Returns: nil while the server stops.
  public func reserve(bytes: Int, userID: UInt32) async -> MemoryRoom? {
    guard let id = await hold(bytes: bytes, userID: userID) else { return nil }
    return MemoryRoom(id: id, bytes: bytes) { [weak self] in
      guard let self else { return }
      Task { await self.release(id) }
    }
  }

  /// Counts reports that can't be read, and names them to those who follow.
  public func refuse(_ refusal: Refusal, count: Int, type: String?, namespace: String?) {
    counts.tally.refuse(refusal, count: count)
    guard feed.hasFollowers else { return }
    var report = TailReport()
    (report.outcome, report.code) = ("refused", refusal.code.rawValue)
    (report.type, report.namespace) = (type, namespace)
    tell([report])
  }

  /// The note of an input. - Returns: nil if there is no such note.
  public func note(_ key: String, of namespace: NamespaceName) async -> [UInt8]? {
    await sink.note(key, of: namespace)
  }

  /// Commits what sessions did until now, with the time that they were in use, and ends hours that are over.
  public func lookAtSessions() {
    sessions.look(now: time.uptime)
    endRound()
  }

  private static func tooLarge(_ group: SubmissionGroup, bytesMax: Int) -> Refusal {
    Refusal(
      .payloadTooLarge,
      "the reports that came together need \(group.memoryBytes) bytes; ingest.memoryMByte has room for \(bytesMax): send "
        + "fewer at once")
  }

  private func refuse(
    _ group: SubmissionGroup, _ refusal: Refusal, _ whenCommitted: ([SubmissionAnswer]) -> Void
  ) {
    counts.tally.refuse(refusal, count: group.submissions.count)
    whenCommitted(group.submissions.map { _ in .refused(refusal) })
  }
}

// MARK: - Memory

extension IngestServer {
  /// The number that a group's memory is known by: that of `room`, or a new one; nil if there is no memory for it.
  private func holding(_ group: SubmissionGroup, _ room: MemoryRoom?) async -> Int? {
    if let room { return room.take() ? room.id : nil }
    guard group.isReserved else { return await hold(bytes: group.memoryBytes, userID: group.userID) }
    lastID += 1
    budget.open(lastID, user: group.userID, isConnection: false)
    return lastID
  }

  private func hold(bytes: Int, userID: UInt32) async -> Int? {
    guard state == .serving, bytes <= rules.requestBytesMax else { return nil }
    lastID += 1
    let (id, bytes) = (lastID, max(1, bytes))
    budget.open(id, user: userID, isConnection: false)
    if budget.mayWork(id, requestBytes: bytes) { return id }
    counts.memoryPauses += 1
    waitingForBudget.append(id)
    let isGiven = await withTaskCancellationHandler {
      await withCheckedContinuation { roomWaiters[id] = RoomWaiter(bytes: bytes, continuation: $0) }
    } onCancel: {
      Task { await self.refuseRoom(id) }
    }
    if !isGiven { budget.close(id) }
    return isGiven ? id : nil
  }

  /// The longest waiting task goes on if there is memory for it now; it waits behind the others if not.
  func giveRoom(_ id: Int) {
    guard let waiter = roomWaiters[id] else { return }
    guard budget.mayWork(id, requestBytes: waiter.bytes) else { return waitingForBudget.append(id) }
    roomWaiters[id] = nil
    waiter.continuation.resume(returning: true)
  }

  private func refuseRoom(_ id: Int) { roomWaiters.removeValue(forKey: id)?.continuation.resume(returning: false) }

  func refuseRoom() { for id in roomWaiters.keys.sorted() { refuseRoom(id) } }

  private func release(_ id: Int) {
    budget.close(id)
    endRound()
  }

  // MARK: Turns and commits

  /// Admits reports of a group. - Returns: the cost.
  func groupTurn(_ id: Int, _ credit: Int) -> Int {
    guard var pending = groups[id] else { return 1 }
    groups[id] = nil  // so that nothing of it is copied
    takeRules()
    var turn = WorkTurn(credit: max(1, credit - WorkTurn.Cost.turn), unreadBytesMax: .max)
    let before = turn.credit
    let now = facts.read(time)
    let isDone = pending.group.admit(within: &turn, rules, facts, unixMilliseconds: now)
    let cost = before - turn.credit + WorkTurn.Cost.turn
    work.endTurn(id, user: pending.group.userID, cost: cost, waits: !isDone)
    tell(pending.group.takeRefused())
    if isDone {
      finishAdmitting(id, pending)
    } else {
      groups[id] = pending
    }
    return cost
  }

  private func finishAdmitting(_ id: Int, _ pending: PendingGroup) {
    var pending = pending
    counts.tally.add(log.told(pending.group.takeTally()))
    guard let commit = pending.group.takeCommit() else { return answer(id, pending, [], nil) }
    let (bytes, batchBytes) = pending.group.isReserved ? (0, 0) : (pending.group.bytes, pending.group.batchBytes)
    budget.set(id, bytes: bytes, batchBytes: batchBytes)
    composer.add(commit.batches, note: commit.note, connection: id, user: pending.group.userID)
    groups[id] = pending
  }

  func settleGroup(_ id: Int, _ outcomes: ArraySlice<BatchOutcome>, _ failure: Refusal?) {
    guard let pending = groups.removeValue(forKey: id) else { return }
    answer(id, pending, outcomes, failure)
  }

  private func answer(_ id: Int, _ pending: PendingGroup, _ outcomes: ArraySlice<BatchOutcome>, _ failure: Refusal?) {
    var pending = pending
    let answers = pending.group.settle(outcomes, failure: failure)
    counts.tally.add(pending.group.takeTally())
    budget.close(id)
    pending.whenCommitted(answers)
    endStopIfEmpty()
  }
}
