import PrismBase
import PrismProtocol

/// An upper end that the operator may raise in the daemon's own file.
struct Ceiling: Sendable {
  let name: String
  let path: any KeyPath<DaemonConfiguration.Ceilings, Int> & Sendable
}

extension DaemonConfiguration.Ceilings {
  /// The furthest that `limits.*` may raise each (docs/configuration.md).
  static var furthest: Self {
    var ceilings = Self()
    ceilings.maxBodyMByte = 64
    ceilings.periodicTimerSecond = 3600
    ceilings.maxItem = 10_000
    ceilings.maxFlowMByte = 1_048_576
    ceilings.expirationDay = 3650
    return ceilings
  }
}

extension ValueForm where Value == Int {
  /// A whole number in decimal digits.
  static func integer(_ range: ClosedRange<Int>, unit: String = "", raisedBy ceiling: Ceiling? = nil) -> Self {
    let maximum = ceiling.map { DaemonConfiguration.Ceilings.furthest[keyPath: $0.path] } ?? range.upperBound
    let schema: JSONValue = ["type": "integer", "minimum": .int(range.lowerBound), "maximum": .int(maximum)]
    return ValueForm(
      allowed: "\(range.lowerBound)...\(range.upperBound)", unit: unit, schema: Schema.orEnvironment(schema)
    ) { node, key, checker in
      let upperEnd = ceiling.map { checker.ceilings[keyPath: $0.path] } ?? range.upperBound
      let allowed = "\(range.lowerBound)...\(upperEnd)"
      guard let scalar = checker.scalar(node, key, mustBe: allowed) else { return nil }
      switch scalar.wholeNumber {
      case .number(let value) where range.lowerBound...upperEnd ~= value: return value
      case .number(let value) where upperEnd + 1...max(upperEnd + 1, maximum) ~= value && ceiling != nil:
        let hint = "\(ceiling?.name ?? "") of prismd.yaml may raise the upper end to \(maximum)"
        checker.fault(node.line, key, "is \(node.shown), must be \(allowed); \(hint)")
      case .number, .beyondInteger: checker.refuse(node, key, mustBe: allowed)
      case .none(let hint):
        checker.fault(node.line, key, "is \(node.shown), must be a whole number, \(allowed)\(hint)")
      }
      return nil
    } show: {
      .int($0)
    }
  }

  /// MiB outside, bytes inside.
  static func mebibytes(_ range: ClosedRange<Int>, raisedBy ceiling: Ceiling? = nil) -> Self {
    integer(range, unit: "MiB", raisedBy: ceiling).converted({ $0 * 1_048_576 }, back: { $0 / 1_048_576 })
  }
}

extension ValueForm where Value == UInt32 {
  /// A file's mode as chmod takes it: octal digits, whether YAML sees a number or a string in them.
  static var fileMode: Self {
    let allowed = "an octal file mode, 0600...0777"
    let schema: JSONValue = ["type": ["string", "integer"], "pattern": "^(0o?)?[0-7]{3}$|\\$\\{"]
    return ValueForm(allowed: allowed, schema: schema) { node, key, checker in
      guard let scalar = checker.scalar(node, key, mustBe: allowed) else { return nil }
      let digits = scalar.text.hasPrefix("0o") ? scalar.text.dropFirst(2) : scalar.text[...]
      let isOctal = digits.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "7")).contains($0) }
      if isOctal, let mode = UInt32(digits, radix: 8), 0o600...0o777 ~= mode { return mode }
      checker.refuse(node, key, mustBe: allowed)
      return nil
    } show: {
      .string("0" + String($0, radix: 8))
    }
  }
}

extension YAMLScalar {
  fileprivate enum WholeNumber {
    case number(Int)
    case beyondInteger
    case none(hint: String)
  }

  fileprivate var wholeNumber: WholeNumber {
    let digits = text.hasPrefix("-") ? text.dropFirst() : text[...]
    guard !digits.isEmpty, digits.utf8.allSatisfy(\.isASCIIDigit) else {
      return .none(hint: "")
    }
    guard isPlain || written != nil else { return .none(hint: "; write it without quotes") }
    if digits.count > 1 && digits.hasPrefix("0") {
      return .none(hint: "; a leading zero means octal elsewhere, write it without")
    }
    return Int(text).map { .number($0) } ?? .beyondInteger
  }
}

extension ValueForm where Value == Duration {
  static func seconds(_ range: ClosedRange<Int>, raisedBy ceiling: Ceiling? = nil) -> Self {
    ValueForm<Int>.integer(range, unit: "seconds", raisedBy: ceiling)
      .converted({ .seconds($0) }, back: { Int($0.components.seconds) })
  }

  static func minutes(_ range: ClosedRange<Int>) -> Self {
    ValueForm<Int>.integer(range, unit: "minutes")
      .converted({ .seconds($0 * 60) }, back: { Int($0.components.seconds) / 60 })
  }

  static func milliseconds(_ range: ClosedRange<Int>) -> Self {
    ValueForm<Int>.integer(range, unit: "ms").converted({ .milliseconds($0) }, back: { Int($0.wholeMilliseconds) })
  }
}
