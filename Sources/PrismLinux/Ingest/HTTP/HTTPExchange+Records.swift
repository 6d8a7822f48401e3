import PrismAdmission
import PrismInputs
import PrismProtocol

// Requests about records: a line for the conversation, and its answer with a status and an ETag (docs/records.md, "Over HTTP").
extension HTTPExchange {
  mutating func beginFeeding(_ line: [UInt8], _ head: HTTPHead) {
    (body, fedBytes, bodyLines, state) = (line, 0, 1, .feeding(head))
  }

  /// Changes are kept from before the list is read, so that no change is missed. - Returns: why that is not possible.
  func beginPoll(_ conversation: inout IngestConversation) -> Refusal? {
    guard let table = record?.awaited else { return nil }
    do throws(Refusal) { try conversation.beginPoll(table) } catch { return error }
    return nil
  }

  mutating func answer(_ head: HTTPHead, _ refusal: Refusal) {
    body = []
    answer(head, InputAnswer(refusal))
  }

  mutating func answerRecord(
    _ head: HTTPHead, _ line: [UInt8], _ summary: AnswerSummary, _ conversation: inout IngestConversation
  ) {
    let table = record?.awaited
    var (status, etag): (Int, Int64?) = (200, nil)
    switch summary.record {
    case .current(let version):
      etag = version
      if version == record?.known {
        if table != nil {
          state = .polling(head)
          return poll(head, conversation)
        }
        status = 304
      }
    case .absent: status = 404
    case nil: break
    }
    endPoll(&conversation)
    if let refusal = summary.onlyRefusal { return answer(head, refusal) }
    answer(head, InputAnswer(status: status, body: status == 304 ? [] : line), etag: etag)
  }

  /// Reads the list again if its table was changed since.
  mutating func poll(_ head: HTTPHead, _ conversation: IngestConversation) {
    guard let record, let table = record.awaited, let known = record.known,
      conversation.hasChanged(table, since: known), let line = try? record.line([])
    else { return }
    beginFeeding(line, head)
  }

  /// How long the request that is being answered waits for a change; nil: it does not wait.
  var pollWait: Duration? { if case .polling = state { record.map { .seconds($0.waitSeconds) } } else { nil } }

  /// Answers a request that waits: there was no change.
  mutating func stopPolling(_ conversation: inout IngestConversation) {
    guard case .polling(let head) = state else { return }
    endPoll(&conversation)
    answer(head, InputAnswer(status: 304, body: []), etag: record?.known)
  }

  private func endPoll(_ conversation: inout IngestConversation) {
    if let table = record?.awaited { conversation.endPoll(table) }
  }
}
