import PrismAdmission
import PrismProtocol

// Changes of tables: for a watch, or for a list over HTTP that waits for one.
extension IngestConnection {
  /// Takes changes of tables as they were committed. - Returns: whether the client watches one of them.
  func takes(_ changes: [RecordTableChange], _ rules: AdmissionRules) -> Bool {
    conversation?.value.take(rules)
    var isConcerned = false
    for change in changes where conversation?.value.take(change) == true { isConcerned = true }
    return isConcerned
  }

  /// How long it waits; nil: no request waits.
  var pollWait: Duration? { http?.value.pollWait }

  /// Answers the request that waits: there was no change. - Returns: false: no request waits.
  func stopPolling() -> Bool {
    guard pollWait != nil, let conversation else { return false }
    http?.value.stopPolling(&conversation.value)
    return true
  }
}
