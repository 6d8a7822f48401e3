/// The outcome of a change that the server made to a record (docs/records.md, "Both sides").
public struct RecordMerge: Equatable, Sendable {
  /// The record is here as the server has it; else as it was here.
  public var takesRemote: Bool
  /// Both sides had changed it, and one change is lost.
  public var isConflict = false
  /// Nothing of the record stays here.
  public var isGone = false
}

extension RecordStanding {
  /// A record that came from the server.
  public static let ofServer = {
    var standing = RecordStanding()
    standing.send()
    _ = standing.confirm()
    return standing
  }()

  /// A deletion of a record that a server may have.
  public static let ofDeletion = {
    var standing = ofServer
    _ = standing.delete()
    standing.forget()
    return standing
  }()

  /// The server changed the record, which no operation in flight is about.
  /// - Parameter isSame: its fields are those that are here.
  /// - Parameter keepsLocal: of two changes, the one that was made here holds. It is sent to the server then.
  public mutating func merge(
    _ change: RecordOperation.Kind, isSame: Bool, keepsLocal: Bool
  ) -> RecordMerge {
    guard sent == nil else { preconditionFailure("an operation in flight is answered before the server's changes") }
    let isDeletion = change == .delete
    // A change that the server refused is not kept.
    guard isWaiting else { return take(isDeletion: isDeletion, isConflict: false) }
    switch (state, isDeletion) {
    // The server never had it: the deletion was of another record under its id.
    case (.insert, true): return RecordMerge(takesRemote: false)
    case (.delete, true): return take(isDeletion: true, isConflict: false)
    case (.insert, false), (.update, false):
      if isSame { return take(isDeletion: false, isConflict: false) }
    case (.clean, _), (.update, true), (.delete, false): break
    }
    guard keepsLocal else { return take(isDeletion: isDeletion, isConflict: true) }
    isKnown = !isDeletion
    if state != .delete { state = isKnown ? .update : .insert }
    return RecordMerge(takesRemote: false, isConflict: true)
  }

  private mutating func take(isDeletion: Bool, isConflict: Bool) -> RecordMerge {
    if !isDeletion { self = .ofServer }
    return RecordMerge(takesRemote: true, isConflict: isConflict, isGone: isDeletion)
  }
}
