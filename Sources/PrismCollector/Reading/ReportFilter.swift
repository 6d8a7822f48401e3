import PrismBase
import PrismHTTP
import PrismProtocol

/// Which reports are wanted, and how many.
struct ReportFilter: Sendable, Equatable {
  static let limits = 1...1000

  /// The namespaces of the one who asks.
  let scope: Scope

  /// The time of a report by which it is found and counted.
  enum Axis: String, Sendable, CaseIterable {
    /// When it was made, corrected by the clock of its device; when it was received, if it has no such time.
    case created
    case received
  }

  var namespace: String?
  var type: String?
  var device: String?
  var kind: String?
  /// Their time, milliseconds since 1970: from `since`, before `until`.
  var since: Int64?, until: Int64?
  var axis = Axis.created
  /// Conditions on fields of the meta, all of which must hold.
  var metas: [MetaCondition] = []
  /// Only reports behind this one.
  var after: Int64 = 0
  /// Only reports in front of this one.
  var before: Int64?
  /// From the newest to the oldest; else the other way.
  var isNewestFirst = false
  var limit = 100
  /// For outputs; readers ask for one payload at a time.
  var hasPayloads = false

  /// All reports behind an id, with their payloads.
  static func forOutput(after id: Int64, _ limit: Int) -> ReportFilter {
    var filter = ReportFilter(scope: .everything)
    (filter.after, filter.limit, filter.hasPayloads) = (id, limit, true)
    return filter
  }

  /// Of the reports that are wanted; nil: no report is between `after` and `before`.
  var ids: ClosedRange<Int64>? {
    let last = (before ?? .max) - 1
    return after < last ? after + 1...last : nil
  }

  /// Whether it wants a time. A bound that is not given bounds nothing: a device's time may be any number.
  @inline(__always) func wants(_ time: Int64) -> Bool { time >= since ?? .min && until.map { time < $0 } ?? true }

  func mayWant(_ times: ClosedRange<Int64>) -> Bool {
    times.upperBound >= since ?? .min && until.map { times.lowerBound < $0 } ?? true
  }

  /// Whether it wants reports of such a sender.
  func wants(_ device: String, _ namespace: String, _ kind: String) -> Bool {
    scope.has(namespace) && (self.device ?? device) == device && (self.namespace ?? namespace) == namespace
      && (self.kind ?? kind) == kind
  }
}

extension ReportFilter {
  /// - Throws: 400 for another word.
  static func kind(_ word: String?) throws(CollectorRefusal) -> String? {
    let kinds = RowKind.reports.map(\.name)
    guard let word, !kinds.contains(word) else { return word }
    throw CollectorRefusal(400, "kind: is `\(word.prefix(32))`, must be one of \(kinds.joined(separator: ", "))")
  }
}

extension MetaCondition {
  /// The conditions of a parameter, which may come several times. - Throws: 400 naming it.
  static func all(_ name: String, _ request: HTTPRequest) throws(CollectorRefusal) -> [MetaCondition] {
    let texts = request.query.filter { $0.name == name }.map(\.value)
    guard texts.count <= countMax else {
      throw CollectorRefusal(400, "\(name): \(texts.count) conditions, at most \(countMax) are taken")
    }
    var conditions: [MetaCondition] = []
    for text in texts {
      do throws(Fault) { conditions.append(try MetaCondition(text)) } catch {
        throw CollectorRefusal(400, "\(name): a condition \(error.reason); write it as KEY.KEY >= VALUE")
      }
    }
    return conditions
  }
}

extension HTTPRequest {
  /// A parameter with a typing error would be left out of the question, and the answer be one to another question. A change
  /// with an empty one, of a variable that is not set, would be one of everything.
  /// - Throws: 400 for a parameter that is not among `known`, with the nearest one, and for an empty one of a change.
  func checkParameters(_ known: [String]) throws(CollectorRefusal) {
    if method != .get, let empty = query.first(where: { $0.value.isEmpty && known.contains($0.name) }) {
      throw CollectorRefusal(400, "\(empty.name): is empty; leave it out if all are wanted")
    }
    guard let unknown = query.map(\.name).first(where: { !known.contains($0) }) else { return }
    let hint = NearestName.of(unknown, among: known).map { "; did you mean `\($0)`?" } ?? "."
    let others = known.isEmpty ? "No parameter is taken" : "There are \(known.joined(separator: ", "))"
    throw CollectorRefusal(400, "`\(unknown.prefix(64))` is no parameter here\(hint) \(others)")
  }

  /// The whole number of a parameter. - Throws: 400 outside of `range`.
  func number<Value: FixedWidthInteger>(
    _ name: String, in range: ClosedRange<Value>
  ) throws(CollectorRefusal) -> Value? {
    guard let text = parameter(name) else { return nil }
    guard let value = Value(text), range.contains(value) else {
      throw CollectorRefusal(
        400,
        "\(name): is `\(text.prefix(32))`, must be a whole number from \(range.lowerBound) to \(range.upperBound)")
    }
    return value
  }
}
