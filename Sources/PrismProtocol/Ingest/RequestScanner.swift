/// Takes one line of the ingest protocol apart in a single pass, validating all of it (docs/ingest-protocol.md).
///
/// An ordinary report costs no allocation: what is found are positions in the line.
public struct RequestScanner {
  private enum Field: Int, CaseIterable {
    case namespace, type, meta, payloadBytes, payload, reportId, createdTime, hello, isGather, common, watch
    case put, patch, delete, get, list

    private static let names = allCases.map { Array("\($0)".utf8) }
    /// By first byte and length at most one field is in question.
    private static let shapes = allCases.reduce(into: [Field?](repeating: nil, count: 512)) {
      $0[shape(names[$1.rawValue][0], names[$1.rawValue].count)] = $1
    }
    /// Each is the only one of its line.
    static let alone: [Field] = [.hello, .isGather, .common, .watch, .put, .patch, .delete, .get, .list]
    /// The same as bits of `seen`: asked for every line.
    static let aloneBits = alone.reduce(UInt16(0)) { $0 | 1 << UInt16($1.rawValue) }

    private static func shape(_ first: UInt8, _ count: Int) -> Int { Int(first & 31) << 4 | count & 15 }

    init?(_ key: ScannedString, in line: Span<UInt8>) {
      guard !key.hasEscapes, let first = key.range.first else {
        self.init(rawValue: Self.names.firstIndex { key.equals($0, in: line) } ?? -1)
        return
      }
      guard let field = Self.shapes[Self.shape(line[first], key.range.count)],
        key.equals(Self.names[field.rawValue], in: line)
      else { return nil }
      self = field
    }
  }

  private var json = JSONScanner()
  private var seen: UInt16 = 0
  /// The first thing that is wrong with what the line says; its form is checked to the end all the same.
  private var fault: Refusal?
  private var report = ScannedReport(type: ScannedString(range: 0..<0, hasEscapes: false))
  private var base64: ScannedString?
  private var followingBytes: Int?
  /// The object of `hello`, `watch`, or a request about records.
  private var object: Range<Int>?
  private var question: ScannedString?
  /// The field whose value is being read.
  private var current: Field?

  private init() {}

  /// - Parameter line: without its line feed.
  /// - Parameter reserved: the keys that set `Meta.mayCollide`.
  public static func scan(_ line: Span<UInt8>, reserved: ReservedKeys) -> ScannedLine {
    var scanner = RequestScanner()
    do throws(JSONError) {
      try scanner.scanObject(line, reserved)
    } catch {
      let refusal = scanner.isCut(line) ? scanner.tooLarge : Refusal(.badRequest, "not a JSON object: \(error)")
      return ScannedLine(request: .failure(refusal), followingBytes: 0)
    }
    return ScannedLine(request: scanner.request(), followingBytes: scanner.followingBytes ?? 0)
  }

  /// The refusal of a line that is too long to be read, judged by its beginning.
  public static func refusal(ofTooLong beginning: Span<UInt8>, bytesMax: Int) -> Refusal {
    var scanner = RequestScanner()
    try? scanner.scanObject(beginning, ReservedKeys([]))  // it must fail at the cut: only where it was is of interest
    return Refusal(scanner.tooLargeCode, "the line is longer than \(bytesMax) bytes")
  }

  // MARK: Too much

  /// Of the field that was being read where the line had to be cut.
  private var tooLargeCode: RefusalCode {
    switch current {
    case .payload: .payloadTooLarge
    case .meta: .metaTooLarge
    default: .badRequest
    }
  }

  private var tooLarge: Refusal {
    Refusal(tooLargeCode, "the line has more than \(Limits.scannedBytesMax) bytes beside its payload")
  }

  private var scannedBytesMax: Int { Limits.scannedBytesMax + (base64?.range.count ?? 0) }

  /// Whether scanning ended where it was cut; no literal or escape that may be cut is longer.
  private func isCut(_ line: Span<UInt8>) -> Bool {
    line.count > scannedBytesMax && json.position + 16 > scannedBytesMax
  }

  // MARK: The pass

  private mutating func scanObject(_ line: Span<UInt8>, _ reserved: ReservedKeys) throws(JSONError) {
    guard json.next(line) == UInt8(ascii: "{") else { throw json.failure("an object is expected") }
    if try json.enter(line, close: UInt8(ascii: "}"), depth: 0) {
      repeat { try scanField(line, reserved) } while try json.another(line, close: UInt8(ascii: "}"))
    }
    guard json.next(line) == nil else { throw json.failure("something follows the object") }
    if let offset = json.invalidUTF8 { fault = Refusal(.badRequest, "invalid UTF-8 at byte \(offset)") }
  }

  /// All but a payload is looked at only as far as `Limits.scannedBytesMax` goes: no line costs more than that.
  private mutating func scanField(_ whole: Span<UInt8>, _ reserved: ReservedKeys) throws(JSONError) {
    let line = whole.extracting(first: scannedBytesMax)
    let key = try json.key(line)
    guard let field = Field(key, in: line) else {
      let known = Field.allCases.filter { !Field.alone.contains($0) }.map { "\($0)" }.joined(separator: ", ")
      note("unknown field `\(key.string(in: line).prefix(64))`; known are \(known)")
      return try json.skipValue(line, depth: 1)
    }
    let bit = UInt16(1) << UInt16(field.rawValue)
    if seen & bit != 0 { note("`\(field)` occurs twice") }
    seen |= bit
    current = field
    try scanValue(of: field, field == .payload ? whole : line, reserved)
    current = nil
  }

  private mutating func scanValue(
    of field: Field, _ line: Span<UInt8>, _ reserved: ReservedKeys
  ) throws(JSONError) {
    switch field {
    case .namespace: report.namespace = try string(field, line)
    case .type: report.type = try string(field, line) ?? report.type
    case .meta: report.meta = try ScannedReport.Meta(&json, line, reserved: reserved)
    case .payloadBytes:
      guard let range = try number(field, line) else { return }
      followingBytes = wholeNumber(line, range)
      if followingBytes == nil { note("`payloadBytes` must be a whole number of bytes, 0 or more") }
    case .payload: base64 = try string(field, line)
    case .reportId: report.reportID = try string(field, line).flatMap { reportID($0, line) }
    case .createdTime:
      guard let range = try number(field, line) else { return }
      report.createdTime = milliseconds(line, range)
    case .hello, .watch, .put, .patch, .delete, .get, .list:
      let start = json.next(line) == UInt8(ascii: "{") ? json.position : nil
      if start == nil { note("`\(field)` must be an object") }
      try json.skipValue(line, depth: 1)
      object = start.map { $0..<json.position }
    case .isGather: question = try string(field, line)
    case .common:
      if json.next(line) != UInt8(ascii: "t") { note("`common` must be true") }
      try json.skipValue(line, depth: 1)
    }
  }

  private mutating func string(_ field: Field, _ line: Span<UInt8>) throws(JSONError) -> ScannedString? {
    guard json.next(line) == UInt8(ascii: "\"") else {
      note("`\(field)` must be a string")
      try json.skipValue(line, depth: 1)
      return nil
    }
    return try json.string(line)
  }

  private mutating func number(_ field: Field, _ line: Span<UInt8>) throws(JSONError) -> Range<Int>? {
    guard let first = json.next(line), first == UInt8(ascii: "-") || UInt8(ascii: "0")...UInt8(ascii: "9") ~= first
    else {
      note("`\(field)` must be a number")
      try json.skipValue(line, depth: 1)
      return nil
    }
    let start = json.position
    try json.skipNumber(line)
    return start..<json.position
  }

  private mutating func note(_ message: String) {
    if fault == nil { fault = Refusal(.badRequest, message) }
  }

  // MARK: What was found

  private func request() -> Result<ScannedRequest, Refusal> {
    if let fault { return .failure(fault) }
    func has(_ field: Field) -> Bool { seen & 1 << UInt16(field.rawValue) != 0 }
    if seen & Field.aloneBits != 0, seen.nonzeroBitCount > 1, let field = Field.alone.first(where: has) {
      return .failure(Refusal(.badRequest, "`\(field)` must be the only field of its line"))
    }
    if let object, let field = Field(rawValue: seen.trailingZeroBitCount) {
      return .success(RecordVerb(rawValue: "\(field)").map { .record($0, object) } ?? .hello(object))
    }
    if let question { return .success(.isGather(question)) }
    if has(.common) { return .success(.common) }
    guard has(.type) else { return .failure(Refusal(.badRequest, "`type` is missing")) }
    guard followingBytes == nil || base64 == nil else {
      return .failure(Refusal(.badRequest, "give `payload` or `payloadBytes`, not both"))
    }
    var result = report
    if let followingBytes { result.payload = .following(bytes: followingBytes) }
    if let base64 { result.payload = .base64(base64) }
    return .success(.report(result))
  }

  private mutating func reportID(_ id: ScannedString, _ line: Span<UInt8>) -> ScannedString? {
    guard 1...64 ~= id.range.count || id.hasEscapes, isReportID(id, line) else {
      note("`reportId` must be 1 to 64 of A-Z a-z 0-9 _ -")
      return nil
    }
    return id
  }

  private func isReportID(_ id: ScannedString, _ line: Span<UInt8>) -> Bool {
    if id.hasEscapes { return ReportID(id.string(in: line)) != nil }
    for index in id.range {
      let byte = line[index]
      guard byte.isASCIIAlphanumeric || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "-") else { return false }
    }
    return true
  }

  /// nil for a sign, a fraction or an exponent. A number that doesn't fit into an `Int` becomes the largest `Int`.
  private func wholeNumber(_ line: Span<UInt8>, _ range: Range<Int>) -> Int? {
    var result = 0
    for index in range {
      guard UInt8(ascii: "0")...UInt8(ascii: "9") ~= line[index] else { return nil }
      let (tens, overflowed) = result.multipliedReportingOverflow(by: 10)
      let (sum, overflowed2) = tens.addingReportingOverflow(Int(line[index] - UInt8(ascii: "0")))
      result = overflowed || overflowed2 ? .max : sum
      if result == .max { return .max }
    }
    return result
  }

  /// A fraction of a millisecond is cut off; nil for what is out of range.
  private mutating func milliseconds(_ line: Span<UInt8>, _ range: Range<Int>) -> Int64? {
    if let whole = wholeNumber(line, range), whole <= CreatedTime.greatest { return Int64(whole) }
    let number = Double(ScannedString(range: range, hasEscapes: false).string(in: line)) ?? -1
    guard number >= 0, number <= Double(CreatedTime.greatest) else {
      note(CreatedTime.outOfRange(number))
      return nil
    }
    return Int64(number)
  }
}
