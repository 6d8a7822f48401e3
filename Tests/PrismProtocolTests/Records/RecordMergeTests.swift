import PrismProtocol
import Testing

/// The table "Both sides" of docs/records.md, row by row.
@Suite("The server's changes meet this device's") struct RecordMergeTests {
  private static func standing(_ words: String) -> RecordStanding {
    var standing = RecordStanding()
    switch words {
    case "insert": break
    case "refused insert":
      standing.send()
      _ = standing.refuse()
    case "clean": standing = .ofServer
    case "update":
      standing = .ofServer
      standing.put()
    case "refused update":
      standing = Self.standing("update")
      standing.send()
      _ = standing.refuse()
    case "delete":
      standing = .ofServer
      _ = standing.delete()
    default: preconditionFailure("no such standing: \(words)")
    }
    return standing
  }

  @Test(
    "what holds, whether it is a conflict, and what is left to send",
    arguments: [
      ("clean", RecordOperation.Kind.update, false, true, "clean", true, false),
      ("clean", .delete, false, true, "gone", true, false),
      ("insert", .insert, false, true, "update", false, true),
      ("insert", .insert, false, false, "clean", true, true),
      ("insert", .insert, true, true, "clean", true, false),
      ("insert", .delete, false, true, "insert", false, false),
      ("insert", .delete, false, false, "insert", false, false),
      ("update", .update, false, true, "update", false, true),
      ("update", .update, false, false, "clean", true, true),
      ("update", .update, true, true, "clean", true, false),
      ("update", .update, true, false, "clean", true, false),
      ("update", .delete, false, true, "insert", false, true),
      ("update", .delete, false, false, "gone", true, true),
      ("delete", .update, false, true, "delete", false, true),
      ("delete", .update, false, false, "clean", true, true),
      ("delete", .delete, false, true, "gone", true, false),
      ("refused insert", .insert, false, true, "clean", true, false),
      ("refused update", .update, false, true, "clean", true, false),
      ("refused update", .delete, false, true, "gone", true, false),
    ])
  func table(
    here: String, there: RecordOperation.Kind, isSame: Bool, keepsLocal: Bool, after: String, takesRemote: Bool,
    isConflict: Bool
  ) {
    var standing = Self.standing(here)
    let merge = standing.merge(there, isSame: isSame, keepsLocal: keepsLocal)
    #expect(merge.takesRemote == takesRemote && merge.isConflict == isConflict)
    #expect(merge.isGone == (after == "gone"))
    guard !merge.isGone else { return }
    #expect(standing == Self.standing(after))
    let isPossible =
      RecordStanding(
        state: standing.state, sent: standing.sent, isChangedSinceSent: standing.isChangedSinceSent,
        isKnown: standing.isKnown, isRefused: standing.isRefused) != nil
    #expect(isPossible)
  }
}
