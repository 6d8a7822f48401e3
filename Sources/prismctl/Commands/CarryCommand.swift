import Glibc
import PrismBase
import PrismControl
import PrismPacket
import PrismProtocol

extension Command {
  static let carry = Command(
    words: ["carry"], summary: "write waiting packets as files, for a machine without a network; settle them later",
    options: [
      Option("--to", "DIR", "write all that waits into this folder; it is made if it is missing"),
      Option("--settle", "DIR", "take \(CarriedAnswer.fileName) of this folder, which prism-collector import wrote"),
      Option("--namespace", "N", "with --to: of this namespace only"), json,
    ],
    example: "prismctl carry --to /media/stick/prism"
  ) { invocation throws(Failure) in
    switch (invocation["--to"], invocation["--settle"]) {
    case (let folder?, nil): try write(to: folder, invocation)
    case (nil, let folder?):
      guard invocation["--namespace"] == nil else { throw .usage("carry: --namespace is for --to") }
      try settle(folder, invocation)
    default: throw .usage("carry: either --to DIR or --settle DIR")
    }
  }

  // MARK: --to

  private static func write(to folder: String, _ invocation: Invocation) throws(Failure) {
    guard mkdir(folder, 0o700) == 0 || errno == EEXIST else {
      throw Failure(Failure.cannotCreate, "\(folder): \(Files.reason()): can't be made")
    }
    let arguments: [JSONValue.Member] = invocation["--namespace"].map { [.init("namespace", .string($0))] } ?? []
    var file: CarriedFile?
    var (carried, held): (CarriedReport?, [HeldReport]) = (nil, [])
    try ControlConnection(invocation).ask(ControlRequest(.carry, arguments)) { answer throws(Failure) in
      if let begun = answer[Answers.file] { file = try CarriedFile(begun, in: folder) }
      if let part = answer[Answers.part] { try file?.add(part) }
      guard answer[Answers.done] == true else { return }
      (carried, held) = (answer[Answers.carried], answer[Answers.held] ?? [])
      if invocation.has("--json") { print(answer.json.text) }
    }
    do throws(FileError) { try Folder.sync(folder) } catch { throw Failure(Failure.cannotCreate, error.description) }
    guard let carried else { throw Failure(Failure.software, "carry: the daemon did not say what it wrote") }
    if !invocation.has("--json") { print(text(carried, folder)) }
    for report in held { Terminal.note("nothing of \(report.namespace), or not all of it: \(report.cause)") }
    if !held.isEmpty { throw Failure(Failure.no, "") }
  }

  private static func text(_ carried: CarriedReport, _ folder: String) -> String {
    guard carried.packets > 0 else { return "nothing waits; no file was written" }
    return """
      \("packet".counted(carried.packets)) with \("report".counted(carried.reports)), \
      \(StatusTable.bytes(carried.bytes)), in \(folder)
      At the collector: prism-collector import \(folder)
      Back here:        prismctl carry --settle \(folder)
      """
  }

  // MARK: --settle

  /// The daemon takes a request of 64 KiB at most.
  private static let answersPerRequest = 16
  private static let receiptsBytesMax = 64 * 1_048_576

  private static func settle(_ folder: String, _ invocation: Invocation) throws(Failure) {
    let answers = try receipts(in: folder)
    var settled: [SettledReport] = []
    for first in stride(from: 0, to: answers.count, by: answersPerRequest) {
      let some = answers[first..<min(answers.count, first + answersPerRequest)]
      let request = ControlRequest(.carrySettle, [.init("answers", .array(some.map(\.json)))])
      try ControlConnection(invocation).ask(request) { answer in
        settled += answer[Answers.settled] ?? []
        if invocation.has("--json") { print(answer.json.text) }
      }
    }
    if !invocation.has("--json") { print(SettledText(settled).text) }
    if settled.contains(where: { $0.state == "kept" }) { throw Failure(Failure.no, "") }
  }

  private static func receipts(in folder: String) throws(Failure) -> [CarriedAnswer] {
    let path = FilePath.joined(folder, CarriedAnswer.fileName)
    let bytes: [UInt8]
    do throws(FileError) { bytes = try SmallFile.read(path, bytesMax: receiptsBytesMax) } catch {
      let names = try? Folder.names(in: folder)
      if let names, !names.contains(where: { $0.hasSuffix(CarriedPacket.fileSuffix) || $0 == CarriedAnswer.fileName }) {
        return []
      }
      throw Failure(Failure.noInput, "\(error.description); prism-collector import writes it")
    }
    var answers: [CarriedAnswer] = []
    for (index, line) in bytes.split(separator: UInt8(ascii: "\n")).enumerated() {
      guard let json = try? JSONValue(parsing: Array(line)), let answer = CarriedAnswer(json: json) else {
        throw Failure(Failure.noInput, "\(path): line \(index + 1) is no answer; import the folder again")
      }
      answers.append(answer)
    }
    return answers
  }
}

/// A packet's file while its parts come.
private struct CarriedFile {
  private let path: String
  private let bytes: Int
  private var content: [UInt8] = []

  init(_ report: CarriedFileReport, in folder: String) throws(Failure) {
    guard report.name.hasSuffix(CarriedPacket.fileSuffix), !report.name.contains("/") else {
      throw Failure(
        Failure.software, "carry: the daemon names no packet's file; are prismd and prismctl of one version?")
    }
    (path, bytes) = (FilePath.joined(folder, report.name), report.bytes)
  }

  /// Writes the file once it is whole: a stick that is taken out too early has no part of one under its name.
  mutating func add(_ part: String) throws(Failure) {
    content += Base64.decode(part.utf8) ?? []
    guard content.count >= bytes else { return }
    do throws(FileError) { try SmallFile.replace(path, with: content, mode: 0o600) } catch {
      throw Failure(Failure.cannotCreate, "\(error.description); files that are there are whole; carry again")
    }
  }
}

/// The effect of the receipts, as a line for each state.
private struct SettledText {
  private static let words = [
    ("delivered", "delivered"), ("waits", "taken; a packet before it has no receipt yet"),
    ("split", "too large or refused: split in two, which wait; carry again"),
    ("dead", "refused by the collector: dead letters (prismctl dead list)"),
    ("unknown", "not waiting here: settled before, or another machine's"), ("kept", "not settled"),
  ]

  let text: String

  init(_ settled: [SettledReport]) {
    guard !settled.isEmpty else {
      text = "nothing was carried in this folder, so there is nothing to settle"
      return
    }
    var lines: [String] = []
    for (state, meaning) in Self.words {
      let count = settled.count { $0.state == state }
      if count > 0 { lines.append("\("packet".counted(count)) \(meaning)") }
    }
    for report in settled where report.state == "kept" {
      lines.append("  \(report.namespace) \(report.packetId): \(report.cause ?? "")")
    }
    text = lines.joined(separator: "\n")
  }
}
