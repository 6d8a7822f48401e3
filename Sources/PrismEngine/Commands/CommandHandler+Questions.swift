import PrismBase
import PrismConfig
import PrismPacket
import PrismProtocol
import PrismStore

// Questions about kept reports, triggers of a server (docs/recorder.md), and erasures.
extension CommandHandler {
  /// Looks at kept reports slice by slice, and writes the answer down as they are let go.
  /// - Returns: nil if more would leave than may, or if it was stopped before: then nothing leaves.
  func answer(
    _ question: Question, _ record: StoredRecord, _ namespace: NamespaceName
  ) async throws(StoreError) -> CommandEnd? {
    let (rules, began) = (engine.hub.current.daemon.commands, engine.parts.time.uptime)
    var run = QuestionRun(question) { rules.allowsAsking(for: $0) }
    while !run.isComplete {
      run = try await engine.parts.store.look(run, of: namespace)
      guard !Task.isCancelled else { return nil }
    }
    run.answer.milliseconds = Int((engine.parts.time.uptime - began).wholeMilliseconds)
    if run.answer.bytes > question.bytesMax {
      let refusal = CommandRefusal.overBudget(run.answer, bytesMax: question.bytesMax)
      try await finish(record, answer(.refused, .string(refusal.message)), namespace, run)
      noteEnd(.refused, refusal.label, record, namespace)
      return nil
    }
    guard let answered = try await finish(record, answer(.done), namespace, run) else { return nil }
    engine.parts.log.info(
      "a question was answered",
      [
        "namespace": namespace.text, "id": record.commandID.text, "type": question.type.text,
        "reports": String(answered.rows), "bytes": String(answered.bytes),
      ])
    if question.want == .rows { _ = await engine.flush(namespace) }
    return .done(answered.json)
  }

  /// Sets a trigger of the server, or takes it away, as the end of its command is written down.
  func carryOut(
    _ order: TriggerOrder, _ record: StoredRecord, _ namespace: NamespaceName
  ) async throws(StoreError) -> CommandEnd? {
    let names = await engine.parts.store.triggers[namespace, default: [:]].keys
      .filter { $0.hasPrefix(TriggerOrder.namePrefix) }
    var ended = CommandEnd.done(.string(order.trigger == nil ? "taken away" : "holds for \(order.hours) hours"))
    let types = engine.hub.current.namespaces[namespace]?.monitorList ?? []
    if let fault = order.trigger.flatMap({ types.faults(of: $0).first }) {
      ended = .failed(.string("\(fault.key): \(fault.words)"))
    }
    if !names.contains(order.name) {
      if order.trigger == nil { ended = .failed("no such trigger holds") }
      if names.count >= ReportTrigger.countMax {
        ended = .failed(.string("\(names.count) triggers hold already; take one away"))
      }
    }
    try await finish(record, answer(ended.isDone ? .done : .failed, ended.result), namespace, order: order)
    return ended
  }

  /// Erases reports slice by slice. It fails if rows stay: those of packets that may be at the server.
  func erase(_ value: ErasedValue?, _ namespace: NamespaceName) async -> CommandEnd {
    do throws(StoreError) {
      let isMeant = value.map { value in { @Sendable (meta: [UInt8]) in value.isIn(meta) } }
      var run = ErasureRun(of: namespace, where: isMeant)
      while !run.isComplete, !Task.isCancelled { run = try await engine.parts.store.erase(run) }
      return CommandEnd(isDone: run.inPackets == 0, result: run.json)
    } catch { return .failed(.string("the store failed: \(error)")) }
  }
}
