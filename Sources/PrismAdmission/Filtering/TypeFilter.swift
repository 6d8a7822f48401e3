import PrismBase
import PrismConfig
import PrismProtocol
import Synchronization

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

/// Removes, masks or hashes members of a meta. Pure.
struct Redaction: Sendable {
  static let mask = JSONValue.string("***")

  let rules: [TypeFilters.Redaction]
  let hash: FilterTools.KeyedHash

  /// - Returns: nil if no rule met a member.
  func applied(to meta: JSONValue) -> JSONValue? {
    var (result, isChanged) = (meta, false)
    for rule in rules { result = change(result, rule.field.keys[...], rule.action, &isChanged) ?? result }
    return isChanged ? result : nil
  }

  /// - Parameter isChanged: becomes true if something under `value` is on the path.
  /// - Returns: nil if the value goes.
  private func change(
    _ value: JSONValue, _ path: ArraySlice<String>, _ action: TypeFilters.Redaction.Action, _ isChanged: inout Bool
  ) -> JSONValue? {
    guard !path.isEmpty else {
      isChanged = true
      return redacted(value, action)
    }
    switch value {
    case .object(let members):
      return .object(
        members.compactMap { member in
          var value: JSONValue? = member.value
          for rest in FieldPath.rests(of: path, behind: member.key) {
            value = value.flatMap { change($0, rest, action, &isChanged) }
          }
          return value.map { JSONValue.Member(member.key, $0) }
        })
    case .array(let elements) where path.first == "*":
      return .array(elements.compactMap { change($0, path.dropFirst(), action, &isChanged) })
    default: return value
    }
  }

  private func redacted(_ value: JSONValue, _ action: TypeFilters.Redaction.Action) -> JSONValue? {
    switch action {
    case .drop: return nil
    case .mask: return Self.mask
    case .hash:
      let bytes = value.string.map { Array($0.utf8) } ?? value.bytes
      return hash(bytes).map { .string(Hex.encode($0)) } ?? Self.mask
    }
  }
}

/// Decides by a hash of a value whether a report is kept: equal values are kept or left out together, on every device. Pure.
struct Sampling: Sendable {
  static let key = "MONITOR_SAMPLE"

  let share: Double
  /// nil: the report id.
  let field: FieldPath?

  /// - Parameter reportID: the client's. Where there is neither a field nor an id, chance decides.
  func keeps(_ meta: JSONValue, reportID: [UInt8]?) -> Bool {
    let value = field.flatMap { Self.value(of: $0, in: meta) }
    let bytes = value.map { $0.string.map { Array($0.utf8) } ?? $0.bytes } ?? reportID
    let hash = bytes.map { StableHash.of($0) } ?? UInt64.random(in: .min ... .max)
    return Double(hash >> 11) * 0x1p-53 < share
  }

  /// Says the rate in place of anything that the client said.
  func marked(_ meta: JSONValue) -> JSONValue {
    .object((meta.object ?? []).filter { $0.key != Self.key } + [.init(Self.key, .double(share))])
  }

  /// The first member on the path.
  static func value(of field: FieldPath, in meta: JSONValue) -> JSONValue? { value(field.keys[...], meta) }

  private static func value(_ path: ArraySlice<String>, _ value: JSONValue) -> JSONValue? {
    if path.isEmpty { return value }
    if case .array(let elements) = value, path.first == "*" {
      return elements.lazy.compactMap { Self.value(path.dropFirst(), $0) }.first
    }
    for member in value.object ?? [] {
      for rest in FieldPath.rests(of: path, behind: member.key) {
        if let found = Self.value(rest, member.value) { return found }
      }
    }
    return nil
  }
}

extension FieldPath {
  /// The rests of `path` behind a member with this key. A key may have dots itself, so it may use up several.
  static func rests(of path: ArraySlice<String>, behind key: String) -> [ArraySlice<String>] {
    var rests: [ArraySlice<String>] = []
    if path.first == "*" { rests.append(path.dropFirst()) }
    for count in 1...path.count where path.prefix(count).joined(separator: ".") == key && key != "*" {
      rests.append(path.dropFirst(count))
    }
    return rests
  }
}

/// The reports that each user may still send of types with `perMinute`: a token bucket of one minute's reports for each user
/// and entry of a monitor list.
final class RateLimits: Sendable {
  struct Key: Hashable {
    var namespace: NamespaceName
    var type: String
    var userID: UInt32
  }

  private struct Bucket {
    var tokens: Double
    /// Milliseconds since 1970.
    var filledAt: Int64

    mutating func fill(perMinute: Double, now: Int64) {
      // A clock that was set back gives nothing.
      tokens = min(perMinute, tokens + Double(max(0, now - filledAt)) * perMinute / 60_000)
      filledAt = now
    }
  }

  /// Buckets that are remembered; past it the fullest is forgotten, which is the least that a user can gain.
  static let bucketsMax = 4096
  private let buckets = Mutex<[Key: Bucket]>([:])

  /// Takes a token. - Parameter now: milliseconds since 1970. - Throws: `rate_limited` if there is no token.
  func take(_ key: Key, perMinute: Int, now: Int64) throws(Refusal) {
    let rate = Double(perMinute)
    let missing = buckets.withLock { buckets -> Double in
      if buckets[key] == nil, buckets.count == Self.bucketsMax { Self.forgetFullest(&buckets) }
      var bucket = buckets[key] ?? Bucket(tokens: rate, filledAt: now)
      bucket.fill(perMinute: rate, now: now)
      let missing = max(0, 1 - bucket.tokens)
      if missing == 0 { bucket.tokens -= 1 }
      buckets[key] = bucket
      return missing
    }
    guard missing > 0 else { return }
    throw Refusal(
      .rateLimited, "this user has used up the \(perMinute) reports of this type that perMinute allows in a minute",
      retryMilliseconds: max(1, Int((missing * 60_000 / rate).rounded(.up))))
  }

  private static func forgetFullest(_ buckets: inout [Key: Bucket]) {
    guard let fullest = buckets.max(by: { $0.value.tokens < $1.value.tokens })?.key else { return }
    buckets[fullest] = nil
  }
}
