import Glibc
import PrismBase
import PrismCollector
import PrismProtocol

/// `prism-collector record …`: reads and changes records, whether the collector runs or not.
struct RecordCommand {
  static let options = [
    ArgumentOption("--namespace", "NAME", "the namespace of the table"),
    ArgumentOption("--table", "NAME", "the table"),
    ArgumentOption(
      "--device", "ID", "the device whose records these are; without it they are the fleet's, or all with `list`"),
    ArgumentOption(
      "--field", "CONDITION", "with `list`: a condition on a field, 'net.mode = 4'; may be given several times"),
    ArgumentOption("--from", "LINE", "with `put` of standard input: leaves out the lines before this one"),
  ]

  static let usage = """
    usage: prism-collector record COMMAND --namespace NAME --table NAME [--device ID] [ID] [FIELDS]
           [--config PATH | the flags of prism-collector]

      put ID FIELDS    sets all fields of a record: a JSON object
      put              makes the changes that it reads from standard input, a line each, a thousand in a transaction:
                       {"id":…,"fields":{…}}, {"id":…,"patch":{…}} or {"id":…,"delete":true}. A fault names the line, and
                       the `--from` to go on with; lines may also be sent again
      patch ID FIELDS  changes fields by a JSON Merge Patch (RFC 7396): null removes a field
      delete ID        deletes a record
      get ID           prints a record, by its own id or the server's
      list             prints every record of the table, of all devices or of one, a line each

    \(ArgumentOption.help(options, column: 21))

    Exit codes: 0, 1 it is refused, 64 usage, 69 the store can't be reached, 74 input or output fails, 78 configuration.
    """

  /// Operands of each command.
  private static let operands: [String: ClosedRange<Int>] = [
    "put": 0...2, "patch": 2...2, "delete": 1...1, "get": 1...1, "list": 0...0,
  ]

  private let desk: RecordDesk
  /// Conditions of `list`.
  private var conditions: [String] = []
  /// Of standard input.
  private var firstLine = 1

  /// - Parameter arguments: with the operand `record`. - Returns: the exit code.
  static func run(_ arguments: Arguments) async throws(Flags.Fault) -> Int32 {
    let words = arguments.operands.dropFirst()
    guard let command = words.first, !arguments.contains("--help") else {
      print(usage)
      return arguments.contains("--help") ? 0 : 64
    }
    guard let count = operands[command] else {
      throw Flags.Fault(exitCode: 64, message: "`record \(command)` is no command\n\(usage)")
    }
    guard count.contains(words.count - 1), words.count != 2 || command != "put" else {
      throw Flags.Fault(exitCode: 64, message: "record \(command): wrong number of operands\n\(usage)")
    }
    func value(_ name: String) -> String? { arguments.given.last { $0.name == name }?.value }
    guard let namespace = value("--namespace"), let table = value("--table") else {
      throw Flags.Fault(exitCode: 64, message: "record \(command) needs --namespace and --table\n\(usage)")
    }
    let from = value("--from")
    guard let firstLine = from.map({ Int($0) }) ?? 1, firstLine > 0, from == nil || words.elementsEqual(["put"]) else {
      throw Flags.Fault(
        exitCode: 64, message: "--from: is `\(from ?? "")`, must be the number of a line, with `put` of standard input")
    }
    let options = try Flags(arguments).options
    guard let namespace = NamespaceName(namespace), let table = RecordTableName(table) else {
      throw Flags.Fault(
        exitCode: 64, message: "--namespace and --table must be names of a namespace and of a table of records")
    }
    let conditions = arguments.given.filter { $0.name == "--field" }.compactMap(\.value)
    return try await CollectorDesk.open(options) { desk throws(CollectorDesk.Fault) -> Int32 in
      let records = RecordDesk(desk, namespace: namespace, table: table, device: value("--device"))
      let request = RecordCommand(desk: records, conditions: conditions, firstLine: firstLine)
      return try await request.run(command, Array(words.dropFirst()))
    }
  }

  private func run(_ command: String, _ values: [String]) async throws(RecordDesk.Fault) -> Int32 {
    switch command {
    case "put" where values.isEmpty: return try await changeMany()
    case "put": print(try await desk.put(values[0], fields: values[1]))
    case "patch": print(try await desk.patch(values[0], fields: values[1]))
    case "delete": print(try await desk.delete(values[0]))
    case "get": print(try await desk.get(values[0]))
    default:
      var isWritten = true
      try await desk.list(where: conditions) { record in
        isWritten = StandardStreams.write(Array((record + "\n").utf8)[...], to: STDOUT_FILENO)
        return isWritten
      }
      return isWritten ? 0 : 74
    }
    return 0
  }

  /// Lines of standard input in parts that a request takes, each a transaction.
  private func changeMany() async throws(RecordDesk.Fault) -> Int32 {
    var (input, counts) = (LineInput(from: firstLine), (stored: 0, deleted: 0))
    while let part = input.next() {
      do throws(RecordDesk.Fault) {
        let made = try await desk.change(part.text, firstLine: part.firstLine)
        counts = (counts.stored + made.stored, counts.deleted + made.deleted)
      } catch {
        throw RecordDesk.Fault(
          message: "\(error.message); go on with --from \(part.firstLine)", exitCode: error.exitCode)
      }
    }
    guard !input.hasFailed else {
      throw RecordDesk.Fault(
        message: "standard input can't be read; go on with --from \(input.lineCount + 1)", exitCode: 74)
    }
    print(#"{"stored":\#(counts.stored),"deleted":\#(counts.deleted)}"#)
    return 0
  }
}
