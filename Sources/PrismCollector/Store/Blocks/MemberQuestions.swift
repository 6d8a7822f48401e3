import PrismPacket
import PrismProtocol

/// Questions about what each report has: its sender, its type and its time. For one queue.
final class MemberQuestions {
  /// Reports of a packet that follow each other.
  struct Run {
    let ids: ClosedRange<Int64>
    /// In the block.
    let rows: Range<Int>
    let device: String, namespace: String, kind: String
    let received: Int64, correction: Int64
  }

  /// A type, and its place among all that were seen.
  struct TypeWord {
    let place: Int
    let text: String
    let isWanted: Bool
  }

  /// The answers for the lines of a block. nil: no line has the member.
  struct Values {
    fileprivate(set) var hasTypes = false
    fileprivate(set) var types: [Int]?
    fileprivate var created: [Int64?]?, steps: [Int64?]?, areOfEarlierBoot: [Bool]?

    /// When a report was made or received; nil: at another time than is wanted.
    @inline(__always) func time(_ line: Int, _ run: Run, _ filter: ReportFilter) -> Int64? {
      var time = run.received
      if let created = created?[line] {
        let correction = areOfEarlierBoot?[line] ?? false ? 0 : run.correction
        time = created &+ (steps?[line] ?? 0) &+ correction
      }
      return filter.wants(time) ? time : nil
    }
  }

  private let filter: ReportFilter
  private let type: FieldQuestion<Int>
  private let createdTime = FieldQuestion(wholeNumber: ["CREATE_TIME"])
  private let clockStep = FieldQuestion<Int64?>(["SYS_CLOCK_STEP"], absent: nil) { field, text in
    field.kind == .string ? Int64(String(decoding: field.bytes(in: text), as: UTF8.self)) : nil
  }
  private let isOfEarlierBoot = FieldQuestion<Bool>(["SYS_CLOCK_BOOT"], absent: false) { field, text in
    field.kind == .string && field.bytes(in: text) == Array(ClockMembers.earlierBoot.utf8)
  }
  private let ofRuns: [FieldQuestion<Int64?>] = ["i", "n", "r", "c"].map { FieldQuestion(wholeNumber: [$0]) }
  private let namesOfRuns: [FieldQuestion<String>] = ["d", "s", "k"].map { key in
    FieldQuestion([key], absent: "") { field, text in String(decoding: field.bytes(in: text), as: UTF8.self) }
  }
  private let texts = Texts()
  /// By namespace, and by the place of the whole type.
  private var types: [String: [Int: TypeWord]] = [:]
  private var lastType: (namespace: String, whole: Int, word: TypeWord)?
  private var typeCount = 0

  /// Texts, each with a place. Those with escapes have odd ones.
  private final class Texts {
    var texts: [[UInt8]] = []
    private var places: [[UInt8]: Int] = [:]

    func place(of text: [UInt8], hasEscapes: Bool) -> Int {
      let place = places[text] ?? texts.count
      if place == texts.count {
        places[text] = place
        texts.append(text)
      }
      return 2 * place + (hasEscapes ? 1 : 0)
    }
  }

  init(_ filter: ReportFilter) {
    self.filter = filter
    type = FieldQuestion(["MONITOR_TYPE"], absent: -1) { [texts] field, text in
      guard field.kind == .string else { return -1 }
      return texts.place(of: field.bytes(in: text), hasEscapes: field.hasEscapes)
    }
  }

  /// Those whose sender is wanted. - Throws: `unpackFailed` for what was not written.
  func runs(_ block: BlockParts) throws -> [Run] {
    try block.readRuns { lines in
      let numbers = try ofRuns.map { try $0.answers(lines) ?? [] }
      let names = try namesOfRuns.map { try $0.answers(lines) ?? [] }
      guard (numbers.map(\.count) + names.map(\.count)).allSatisfy({ $0 == lines.rows.count }) else {
        throw PacketError.unpackFailed
      }
      var (runs, end) = ([Run](), 0)
      for line in lines.rows {
        guard let first = numbers[0][line], let count = numbers[1][line], 1...Int64(block.rows - end) ~= count,
          first > 0, let received = numbers[2][line], let correction = numbers[3][line]
        else { throw PacketError.unpackFailed }
        let rows = end..<end + Int(count)
        end = rows.upperBound
        guard filter.wants(names[0][line], names[1][line], names[2][line]) else { continue }
        runs.append(
          Run(
            ids: first...first + count - 1, rows: rows, device: names[0][line], namespace: names[1][line],
            kind: names[2][line], received: received, correction: correction))
      }
      guard end == block.rows else { throw PacketError.countMismatch }
      return runs
    }
  }

  func values(_ lines: PackedLines, hasTypes: Bool) throws -> Values {
    var values = Values()
    values.hasTypes = hasTypes || filter.type != nil
    if values.hasTypes { values.types = try type.answers(lines) }
    guard filter.axis == .created else { return values }
    values.created = try createdTime.answers(lines)
    values.steps = try clockStep.answers(lines)
    values.areOfEarlierBoot = try isOfEarlierBoot.answers(lines)
    return values
  }

  /// The type as the program sent it: without the namespace that a business namespace's types have in front. One with
  /// escapes stays whole.
  func type(_ whole: Int?, _ run: Run) -> TypeWord {
    let whole = whole ?? -1
    if let lastType, lastType.whole == whole, lastType.namespace == run.namespace { return lastType.word }
    let word = types[run.namespace]?[whole] ?? newType(whole, run.namespace)
    types[run.namespace, default: [:]][whole] = word
    lastType = (run.namespace, whole, word)
    return word
  }

  private func newType(_ whole: Int, _ namespace: String) -> TypeWord {
    var text = whole < 0 ? [] : texts.texts[whole / 2][...]
    let prefix = Array("\(namespace)-".utf8)
    let mayBePrefixed = whole % 2 == 0 && NamespaceName(namespace)?.isBusiness == true
    if mayBePrefixed, text.count > prefix.count, text.starts(with: prefix) { text = text.dropFirst(prefix.count) }
    typeCount += 1
    let isWanted = filter.type?.utf8.elementsEqual(text) ?? true
    return TypeWord(place: typeCount, text: String(decoding: text, as: UTF8.self), isWanted: isWanted)
  }
}

/// The packed runs and lines of a block.
struct BlockParts {
  let rows: Int
  fileprivate let runs: ArraySlice<UInt8>, lines: ArraySlice<UInt8>
  fileprivate let packer: RestPacker

  /// - Parameter body: that its checksum tells to be what was written.
  init(_ head: BlockHead, _ body: [UInt8], _ packer: RestPacker) throws {
    (rows, self.packer) = (head.rows, packer)
    (runs, lines) = try ReportBlock.parts(of: body)
  }

  func readRuns<Result>(_ read: (PackedLines) throws -> Result) throws -> Result {
    try packer.read(runs, ReportBlock.limits, read)
  }

  func readLines(_ read: (PackedLines) throws -> Void) throws { try packer.read(lines, ReportBlock.limits, read) }
}

extension FieldQuestion<Int64?> {
  /// The number of a field; nil: it is missing, or not whole, or has over 64 bits.
  convenience init(wholeNumber path: [String]) {
    self.init(path, absent: nil, ofNumbers: Self.whole) { field, text in
      field.kind == .number ? Int64(String(decoding: field.bytes(in: text), as: UTF8.self)) : nil
    }
  }

  private static func whole(_ fractionDigits: Int) -> ((Int64) -> Int64?)? { fractionDigits == 0 ? { $0 } : nil }
}

extension FieldQuestion<Double?> {
  /// Integers up to this one are numbers of 64 bits, too: so a quotient by a power of ten is the nearest one.
  private static var exactMax: UInt64 { 1 << 53 }

  /// The number of a field; nil: it is missing, or too large.
  convenience init(number path: [String]) {
    self.init(path, absent: nil, ofNumbers: Self.quotient) { field, text in
      field.kind == .number ? Self.read(field.bytes(in: text)) : nil
    }
  }

  private static func read(_ text: [UInt8]) -> Double? {
    Double(String(decoding: text, as: UTF8.self)).flatMap { $0.isFinite ? $0 : nil }
  }

  private static func quotient(_ fractionDigits: Int) -> (Int64) -> Double? {
    let power = (0..<fractionDigits).reduce(1.0) { power, _ in power * 10 }
    return { number in
      if number.magnitude <= exactMax { return Double(number) / power }
      return (try? PackedLines.text(of: number, least: 0, most: fractionDigits)).flatMap { read($0) }
    }
  }
}
