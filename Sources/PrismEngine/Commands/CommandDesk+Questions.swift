import PrismBase
import PrismConfig
import PrismProtocol
import PrismStore

// Questions about kept reports (docs/recorder.md, "Questions").
extension CommandDesk {
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
}
