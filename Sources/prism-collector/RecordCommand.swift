import Glibc
import PrismBase
import PrismCollector

/// `prism-collector record …`: reads and changes records, whether the collector runs or not.
struct RecordCommand {
  static let options = [
    ArgumentOption("--namespace", "NAME", "the namespace of the table"),
    ArgumentOption("--table", "NAME", "the table"),
    ArgumentOption("--device", "ID", "the device whose records these are; without it they are the fleet's"),
  ]

  static let usage = """
    usage: prism-collector record COMMAND --namespace NAME --table NAME [--device ID] [ID] [FIELDS]
           [--config PATH | the flags of prism-collector]

      put ID FIELDS    sets all fields of a record: a JSON object
      put              makes the changes that it reads from standard input, a line each, a thousand in a transaction:
                       {"id":…,"fields":{…}}, {"id":…,"patch":{…}} or {"id":…,"delete":true}
      patch ID FIELDS  changes fields by a JSON Merge Patch (RFC 7396): null removes a field
      delete ID        deletes a record
      get ID           prints a record, by its own id or the server's
      list             prints every record of the table, a line each

    \(ArgumentOption.help(options, column: 21))

    Exit codes: 0, 1 it is refused, 64 usage, 69 the store can't be reached, 74 input or output fails, 78 configuration.
    """

  /// Operands of each command.
  private static let operands: [String: ClosedRange<Int>] = [
    "put": 0...2, "patch": 2...2, "delete": 1...1, "get": 1...1, "list": 0...0,
  ]

  private let desk: RecordDesk

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
    let options = try Flags(arguments).options
    do throws(RecordDesk.Fault) {
      let desk = try RecordDesk(options, namespace: namespace, table: table, device: value("--device"))
      let code: Result<Int32, RecordDesk.Fault>
      do throws(RecordDesk.Fault) {
        code = .success(try await RecordCommand(desk: desk).run(command, Array(words.dropFirst())))
      } catch { code = .failure(error) }
      await desk.end()
      return try code.get()
    } catch { throw Flags.Fault(exitCode: error.exitCode, message: error.message) }
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
      try await desk.list { record in
        isWritten = QueryCommand.write(Array((record + "\n").utf8))
        return isWritten
      }
      return isWritten ? 0 : 74
    }
    return 0
  }

  /// Lines of standard input in parts that a request takes, each a transaction.
  private func changeMany() async throws(RecordDesk.Fault) -> Int32 {
    var (input, counts) = (LineInput(), (stored: 0, deleted: 0))
    while let lines = input.next() {
      let made = try await desk.change(lines)
      counts = (counts.stored + made.stored, counts.deleted + made.deleted)
    }
    guard !input.hasFailed else { throw RecordDesk.Fault(message: "standard input can't be read", exitCode: 74) }
    print(#"{"stored":\#(counts.stored),"deleted":\#(counts.deleted)}"#)
    return 0
  }
}

/// Standard input in whole lines.
private struct LineInput {
  private static let linesMax = 1000
  /// Below what a request may have.
  private static let bytesMax = 4 * 1_048_576
  private static let readBytes = 65_536

  private var rest: [UInt8] = []
  private var isAtEnd = false
  private(set) var hasFailed = false

  /// - Returns: at most a thousand lines; nil behind the last.
  mutating func next() -> [UInt8]? {
    while true {
      var (end, lines) = (0, 0)
      for (index, byte) in rest.enumerated() where byte == UInt8(ascii: "\n") {
        guard end == 0 || index < Self.bytesMax, lines < Self.linesMax else { break }
        (end, lines) = (index + 1, lines + 1)
      }
      if lines == Self.linesMax || end > 0 && rest.count > Self.bytesMax { return take(end) }
      // A line that is longer than any change is refused by the collector.
      if isAtEnd || rest.count > Self.bytesMax { return rest.isEmpty ? nil : take(rest.count) }
      read()
    }
  }

  private mutating func take(_ count: Int) -> [UInt8] {
    defer { rest.removeFirst(count) }
    return Array(rest.prefix(count))
  }

  private mutating func read() {
    var buffer = [UInt8](repeating: 0, count: Self.readBytes)
    let count = Glibc.read(STDIN_FILENO, &buffer, buffer.count)
    if count < 0, errno == EINTR { return }
    if count < 0 { hasFailed = true }
    if count <= 0 { isAtEnd = true } else { rest += buffer.prefix(count) }
  }
}
