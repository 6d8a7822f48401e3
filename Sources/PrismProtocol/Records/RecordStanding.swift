/// The state of a record between this device and the server: the table of states in docs/records.md. A value that knows no
/// fields, no store and no network.
///
/// While an operation is in flight, its kind is frozen in `sent`; changes made meanwhile are kept for the next operation.
public struct RecordStanding: Equatable, Sendable {
  /// The difference to the server.
  public internal(set) var state: RecordState
  /// The operation in flight; nil: no operation is.
  public private(set) var sent: RecordOperation.Kind?
  /// It was changed since the operation in flight was made.
  public private(set) var isChangedSinceSent: Bool
  /// The server that answers now has the record, as far as it answered.
  public internal(set) var isKnown: Bool
  /// The server refused its last operation, and it was not changed since.
  public private(set) var isRefused: Bool

  /// A new record: the server never heard of it.
  public init() {
    (state, sent, isChangedSinceSent, isKnown, isRefused) = (.insert, nil, false, false, false)
  }

  /// nil if no history leads there: the values are damaged.
  public init?(
    state: RecordState, sent: RecordOperation.Kind?, isChangedSinceSent: Bool, isKnown: Bool, isRefused: Bool
  ) {
    (self.state, self.sent, self.isChangedSinceSent) = (state, sent, isChangedSinceSent)
    (self.isKnown, self.isRefused) = (isKnown, isRefused)
    guard isPossible else { return nil }
  }

  private var isPossible: Bool {
    if isRefused && (sent != nil || state == .clean) { return false }
    switch sent {
    case nil: return !isChangedSinceSent && (state == .delete || isKnown == (state != .insert))
    case .insert: return !isKnown && (state == .insert || state == .delete && isChangedSinceSent)
    case .update: return isChangedSinceSent ? state == .update || state == .delete : isKnown && state == .update
    case .delete: return state == (isChangedSinceSent ? .insert : .delete)
    }
  }

  /// A change waits for its operation.
  public var isWaiting: Bool { sent == nil ? state != .clean && !isRefused : isChangedSinceSent }

  /// The operation that would be sent now; nil: there is nothing to send, or one that is in flight is not answered yet.
  public var next: RecordOperation.Kind? {
    sent == nil && !isRefused ? RecordOperation.Kind(rawValue: state.rawValue) : nil
  }

  // MARK: Changes here

  /// Its fields were changed, or it was made again.
  public mutating func put() {
    isRefused = false
    // The server will not have it once a deletion in flight is carried out.
    state = sent != .delete && (isKnown || sent == .update) ? .update : .insert
    isChangedSinceSent = sent != nil
  }

  /// It was deleted. - Returns: whether it is gone: the server never heard of it.
  public mutating func delete() -> Bool {
    if sent == nil, !isKnown { return true }
    isRefused = false
    state = .delete
    // The deletion in flight says all that is to be said.
    isChangedSinceSent = sent != nil && sent != .delete
    return false
  }

  /// The server may not have it: it is sent as a new one, also one that is put again after its deletion. A change in flight may
  /// have gone to another store: it is sent again.
  public mutating func forget() {
    (isRefused, isKnown) = (false, false)
    switch sent {
    case nil: if state != .delete { state = .insert }
    case .insert, .update: isChangedSinceSent = true
    case .delete: break
    }
  }

  // MARK: Its operation

  /// Its operation becomes part of a packet.
  /// - Parameter isPartial: another operation must follow, because this one is not complete.
  public mutating func send(isPartial: Bool = false) {
    guard let next else { preconditionFailure("only a record with a waiting change has an operation to send") }
    (sent, isChangedSinceSent) = (next, isPartial)
  }

  /// The server carried the operation out. - Returns: whether the record is gone.
  public mutating func confirm() -> Bool {
    defer { isChangedSinceSent = false }
    switch sent.take() {
    case nil: return false
    case .insert, .update:
      isKnown = true
      if state != .delete { state = isChangedSinceSent ? .update : .clean }
      return false
    case .delete:
      isKnown = false
      return state == .delete
    }
  }

  /// The server refused the operation for good. - Returns: whether the record is gone: the server never had it, and it was
  /// deleted meanwhile.
  public mutating func refuse() -> Bool {
    guard sent != nil else { return false }
    isRefused = !isChangedSinceSent
    return takeBack()
  }

  /// The operation certainly did not leave: it waits again, with the changes made since. - Returns: whether the record is
  /// gone: the server never heard of it.
  public mutating func release() -> Bool {
    guard sent != nil else { return false }
    return takeBack()
  }

  /// The server is where it was before the operation.
  private mutating func takeBack() -> Bool {
    let kind = sent.take()
    isChangedSinceSent = false
    if state != .delete { state = isKnown ? .update : .insert }
    return state == .delete && !isKnown && kind != .delete
  }
}
