import PrismBase
import PrismControl
import PrismProtocol
import PrismStore

/// `prismctl flush`: with `wait` it follows the backlog down until nothing is on its way, all that is left is held, or
/// `timeoutSeconds` have passed.
struct FlushCommand {
  typealias Refused = ControlHandler.Refused

  /// Synchronizations of records that one flush asks for: an update may have to follow the inserts of a circle.
  private static let synchronizationsMax = 3

  let handler: ControlHandler

  func run(
    _ request: ControlRequest, _ note: ControlLog, _ progress: @Sendable (JSONValue) -> Void
  ) async throws(Refused) -> [JSONValue.Member] {
    let (namespace, engine) = (try handler.namespace(request), handler.engine)
    guard await engine.flush(namespace) else { throw handler.unknown(namespace) }
    // Now: waiting may last for hours, and the client may go away meanwhile.
    note.write()
    let all = await engine.pipelines.sorted { $0.key < $1.key }
    let (pipelines, time) = (all.filter { namespace == nil || $0.key == namespace }, engine.parts.time)
    guard request["wait"]?.bool == true else { return [Answers.held(try await gated(pipelines, besides: []))] }
    var synchronizations = 1
    let deadline = request["timeoutSeconds"]?.int.map { time.uptime + .seconds($0) }
    while !Task.isCancelled {
      var (isQuiet, held, failing): (Bool, [HeldReport], [HeldReport]) = (true, [], [])
      for (name, pipeline) in pipelines where await !pipeline.isQuiet {
        let (status, isTrying) = (await pipeline.status, await pipeline.isTrying)
        isQuiet = isQuiet && status.isHeld && !isTrying
        guard !isTrying, let failure = status.heldBy ?? status.presentFailure else { continue }
        let report = HeldReport(namespace: name.text, cause: failure.cause)
        if status.isHeld { held.append(report) } else { failing.append(report) }
      }
      let waiting = try await waiting(Set(pipelines.map(\.key)))
      progress(["progress": ["waiting": .int(waiting), "failing": failing.controlJSON]])
      let isLate = deadline.map { time.uptime >= $0 } ?? false
      if isQuiet, waiting > 0 {
        if synchronizations < Self.synchronizationsMax, await synchronizeAgain(pipelines) {
          synchronizations += 1
          continue
        }
        held += try await gated(pipelines, besides: held)
      }
      if isQuiet || isLate { return [Answers.held(held), Answers.timedOut(!isQuiet)] }
      do { try await time.sleep(for: .milliseconds(100)) } catch { return [] }  // the client has gone
    }
    return []
  }

  /// The namespaces whose rows a gate keeps, each with the reason of the first gate that is shut.
  private func gated(
    _ pipelines: [(key: NamespaceName, value: NamespacePipeline)], besides held: [HeldReport]
  ) async throws(Refused) -> [HeldReport] {
    var found: [HeldReport] = []
    for (name, pipeline) in pipelines where !held.contains(where: { $0.namespace == name.text }) {
      let counts = try await handler.asking { try await handler.engine.parts.store.typeCounts(of: name) }
      if let gate = await gate(of: pipeline, name, counts) {
        found.append(HeldReport(namespace: name.text, cause: gate.words))
      }
    }
    return found
  }

  private func gate(of pipeline: NamespacePipeline, _ name: NamespaceName, _ counts: TypeCounts) async -> ShutGate? {
    for (kind, types) in [(RowKind.meta, counts.metas), (.payload, counts.payloads)] {
      for type in types.keys.sorted() {
        // A report that came meanwhile waits for its timer only.
        if let gate = await pipeline.explain(kind, type), gate.gate != .timer { return gate }
      }
    }
    for table in await tablesThatWait(name) {
      if let gate = await pipeline.synchronizing({ $0.explain(table) }), gate.gate != .recordInterval { return gate }
    }
    return nil
  }

  private func waiting(_ namespaces: Set<NamespaceName>) async throws(Refused) -> Int {
    let queues = try await handler.asking { try await handler.engine.parts.store.status() }
    let records = await handler.engine.parts.store.records
    return namespaces.reduce(0) { sum, name in
      let ledgers = (queues[name] ?? [:]).values.map(\.ledger) + records.tables(of: name).map(\.ledger)
      return ledgers.reduce(sum) { $0 + $1.unsent }
    }
  }

  /// - Returns: whether changes of records wait for nothing but the next synchronization, which is asked for now.
  private func synchronizeAgain(_ pipelines: [(key: NamespaceName, value: NamespacePipeline)]) async -> Bool {
    var isAsked = false
    for (name, pipeline) in pipelines {
      for table in await tablesThatWait(name) {
        let gate = await pipeline.synchronizing { $0.explain(table) }
        guard gate == nil || gate?.gate == .recordInterval else { continue }
        await pipeline.flush()
        isAsked = true
        break
      }
    }
    return isAsked
  }

  private func tablesThatWait(_ namespace: NamespaceName) async -> [RecordTableName] {
    await handler.engine.parts.store.records.tables(of: namespace).filter { $0.ledger[.waiting] > 0 }.map(\.name)
  }
}
