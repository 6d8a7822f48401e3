import PrismProtocol

/// A walk over the rows of a namespace, in slices, to clear those that an app stored under another version than now.
struct UpdateClearing {
  let namespace: Int
  let userID: UInt32
  let app: AppVersion
  /// Rows from this sequence on came with the version of now.
  let before: Int64
  /// Kinds and priorities that are still to be walked, the current one last.
  var walks: [(queue: QueueID, priority: Priority, after: Int64)]
  /// By context: whether its rows are to be cleared.
  var verdicts: [Int64: Bool] = [:]

  init(_ namespace: Int, _ next: (userID: UInt32, app: AppVersion, before: Int64)) {
    (self.namespace, userID, app, before) = (namespace, next.userID, next.app, next.before)
    walks = QueueID.all(of: namespace).flatMap { queue in
      Priority.leaving.map { (queue, $0, PriorityValues.bases[$0]) }
    }
  }

  /// - Parameter members: JSON members without braces. - Returns: whether another version of the app wrote them.
  func isOlder(_ members: some Sequence<UInt8>) -> Bool {
    let text = [UInt8(ascii: "{")] + members + [UInt8(ascii: "}")]
    guard let value = try? JSONValue(parsing: text), value["APP_NAME"]?.string == app.name else { return false }
    return value["APP_VERSION"]?.string.map { $0 != app.version } ?? false
  }
}
