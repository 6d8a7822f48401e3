@testable import PrismAdmission
@testable import PrismLinux
@testable import PrismProtocol

#if FUZZ
  import FuzzSupport
#endif

/// A file of the crash spool: its name, a line feed, and its content. A report that is taken has that name, and the
/// members of the file.
#if FUZZ
  @main
#endif
enum CrashSpoolHarness: FuzzHarness {
  private static let reserved = ReservedKeys(["SYS_BRAND", "APP_NAME", "MONITOR_TYPE"])
  private static let source = SubmissionSource(
    peer: ReportingPeer(userID: 1, groupIDs: [], processID: 0), sessionID: "crash-spool")

  static func run(_ input: ArraySlice<UInt8>) {
    let end = input.firstIndex(of: UInt8(ascii: "\n")) ?? input.endIndex
    let text = String(decoding: input[..<end], as: UTF8.self)
    guard let name = SpoolFileName(text) else { return }
    let suffix = name.content == .meta ? ".json" : ".payload"
    precondition(name.stem + suffix == text, "a name is read as another one")
    guard end < input.endIndex else { return }
    read(Array(input[(end + 1)...]), name)
  }

  private static func read(_ meta: [UInt8], _ name: SpoolFileName) {
    let submission = Submission(
      name.type.text, in: name.namespace.text, meta: meta, reportID: name.reportID, from: source)
    guard let report = try? submission.scanned(reserved: reserved) else { return }
    let text = submission.text.span
    precondition(report.type.string(in: text) == name.type.text, "the type is another one")
    precondition(report.reportID?.string(in: text) == name.reportID.text, "the id is another one")
    guard case .members(let range, _) = report.meta else { return }
    let members = [UInt8(ascii: "{")] + submission.text[range] + [UInt8(ascii: "}")]
    guard let taken = try? JSONValue(parsing: members, allowsDuplicateKeys: true) else {
      fatalError("the members of a meta are no JSON")
    }
    // A line feed within a string is no JSON, and is taken as a space.
    guard let whole = try? JSONValue(parsing: meta, allowsDuplicateKeys: true) else { return }
    precondition(taken == whole, "a meta is taken as another one")
  }
}
