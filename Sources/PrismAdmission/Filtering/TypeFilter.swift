import PrismConfig
import PrismProtocol

/// The filters of one entry of a monitor list, prepared for its reports (docs/filters.md).
struct TypeFilter: Sendable {
  /// A meta after its filters.
  struct Outcome {
    /// A JSON object.
    var meta: [UInt8]
    var mark: ReportBatch.Mark?
  }

  private let namespace: NamespaceName
  private let name: String
  private let perMinute: Int?
  private let redaction: Redaction?
  private let sampling: Sampling?
  private let collapsing: Collapsing?
  private let tools: FilterTools

  /// nil if the type has no filter. - Parameter name: as the monitor list has it.
  init?(_ filters: TypeFilters, of name: String, in namespace: NamespaceName, _ tools: FilterTools) {
    if filters.isEmpty { return nil }
    (self.namespace, self.name, self.tools, perMinute) = (namespace, name, tools, filters.perMinute)
    redaction = filters.redact.isEmpty ? nil : Redaction(rules: filters.redact, hash: tools.hash)
    collapsing = filters.collapse.map {
      Collapsing(type: name, by: $0.by, windowMilliseconds: Int64($0.seconds) * 1000)
    }
    sampling = filters.sample.map { Sampling(share: $0, field: filters.sampleBy) }
  }

  /// Whether it looks into the meta.
  var readsMeta: Bool { redaction != nil || sampling != nil || collapsing != nil }

  /// The first filter, so that a flood costs least. - Throws: `rate_limited`.
  func count(userID: UInt32, unixMilliseconds now: Int64) throws(Refusal) {
    guard let perMinute else { return }
    try tools.rates.take(.init(namespace: namespace, type: name, userID: userID), perMinute: perMinute, now: now)
  }

  /// - Parameter meta: a sound JSON object. - Parameter reportID: the client's; nil: there is no id.
  /// - Parameter unixMilliseconds: now.
  func apply(to meta: [UInt8], reportID: [UInt8]?, unixMilliseconds now: Int64) throws(Refusal) -> Outcome {
    let came: JSONValue
    do throws(JSONError) { came = try JSONValue(parsing: meta, allowsDuplicateKeys: true) } catch {
      throw Refusal(.badRequest, "`meta` can't be filtered: \(error)")
    }
    if let sampling, !sampling.keeps(came, reportID: reportID) { return Outcome(meta: [], mark: .sampledOut) }
    var result = redaction?.applied(to: came)
    if let sampling { result = sampling.marked(result ?? came) }
    guard let repeated = collapsing?.repeated(came, unixMilliseconds: now) else {
      return Outcome(meta: result?.bytes ?? meta)
    }
    return Outcome(meta: Collapsing.cleaned(result ?? came).bytes, mark: .repeatable(repeated))
  }
}

/// Tells which reports of a type are equal (`collapse`), by a hash of fields as they came: before they are redacted. Pure.
struct Collapsing: Sendable {
  /// The store's own members of a row that counts.
  private static let keys: Set = ["REPEAT_COUNT", "REPEAT_FIRST", "REPEAT_LAST"]

  let type: String
  let by: [FieldPath]
  let windowMilliseconds: Int64

  /// nil if the meta lacks all of the fields: then nothing says that it is equal to another.
  func repeated(_ meta: JSONValue, unixMilliseconds now: Int64) -> ReportBatch.Repeat? {
    let values = by.map { Sampling.value(of: $0, in: meta)?.bytes }
    guard values.contains(where: { $0 != nil }) else { return nil }
    return ReportBatch.Repeat(
      high: hash(values, salt: 1), low: hash(values, salt: 2), arrivedTime: now, windowMilliseconds: windowMilliseconds)
  }

  /// SipHash under a key of this process: a client can't make two different reports equal.
  private func hash(_ values: [[UInt8]?], salt: Int) -> UInt64 {
    var hasher = Hasher()
    hasher.combine(salt)
    hasher.combine(type)
    hasher.combine(values)
    return UInt64(bitPattern: Int64(hasher.finalize()))
  }

  /// Without the members that the store writes.
  static func cleaned(_ meta: JSONValue) -> JSONValue {
    .object((meta.object ?? []).filter { !keys.contains($0.key) })
  }
}

/// The state that the filters of all types share: the device's secret, and the reports that each user has sent. One for the
/// life of the daemon, so that a reload forgets neither.
public final class FilterTools: Sendable {
  /// A keyed hash of the value of a field; nil if it can't be made.
  public typealias KeyedHash = @Sendable ([UInt8]) -> [UInt8]?

  let hash: KeyedHash
  let rates = RateLimits()

  /// - Parameter hash: of the device's secret. Where it gives nothing, a value is masked in its place.
  public init(hash: @escaping KeyedHash = { _ in nil }) { self.hash = hash }
}
