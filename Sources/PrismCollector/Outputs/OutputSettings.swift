import PrismBase
import PrismConfig

/// One entry of `outputs`.
public struct OutputSettings: Sendable, Equatable {
  enum Kind: Sendable, Equatable {
    /// nil: standard output.
    case ndjson(RotatingFile.Options?)
    case otlp(OTLPOutput.Options)
    case kafka(KafkaOutput.Options)
  }

  /// Where it came to is noted under this name.
  let name: String
  private(set) var kind: Kind

  private static let keys = [
    "ndjson": ["compress", "rotateMByte", "rotateMinute"], "otlp": ["headers", "timeoutSecond"],
    "kafka": ["topic", "propertiesFile", "timeoutSecond"],
  ]

  /// Reads `{ndjson: FOLDER, …}` or `{otlp: URL, …}`. - Throws: what is wrong, a line each.
  init(_ node: YAMLNode) throws(CollectorSettings.Faults) {
    var reader = EntryReader(node)
    let kinds = Self.keys.keys.filter { reader.has($0) }
    guard kinds.count == 1, let kind = kinds.first, let target = reader.text(kind) else {
      throw CollectorSettings.Faults(lines: [
        "each output is one of {ndjson: FOLDER}, {otlp: URL} and {kafka: BROKERS}, with its own keys"
      ])
    }
    name = reader.text("name") ?? kind
    if name.isEmpty || name.utf8.count > 40 || !name.utf8.allSatisfy(Self.isNameByte) {
      reader.faults.append("name: must be 1 to 40 lower-case letters, digits and -")
    }
    switch kind {
    case "ndjson": self.kind = Self.ndjson(target, &reader)
    case "otlp": self.kind = Self.otlp(target, &reader)
    default: self.kind = Self.kafka(target, &reader)
    }
    reader.refuseOthers(than: Self.keys[kind, default: []] + ["name", kind])
    guard reader.faults.isEmpty else { throw CollectorSettings.Faults(lines: reader.faults) }
  }

  private static func isNameByte(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
      || byte == UInt8(ascii: "-")
  }

  private static func ndjson(_ target: String, _ reader: inout EntryReader) -> Kind {
    guard target != "-" else { return .ndjson(nil) }
    var options = RotatingFile.Options(folder: target)
    switch reader.text("compress") {
    case nil, "zstd": break
    case "none": options.compresses = false
    default: reader.faults.append("compress: must be `zstd` or `none`")
    }
    if let size = reader.number("rotateMByte", 1...65_536) { options.bytesMax = size * 1_048_576 }
    if let minutes = reader.number("rotateMinute", 1...10_080) { options.age = .seconds(minutes * 60) }
    return .ndjson(options)
  }

  private static func otlp(_ target: String, _ reader: inout EntryReader) -> Kind {
    if !target.hasPrefix("http://"), !target.hasPrefix("https://") {
      reader.faults.append("otlp: must be a URL, as https://otel.example:4318")
    }
    var options = OTLPOutput.Options(url: target.hasSuffix("/") ? String(target.dropLast()) : target)
    options.headers = reader.texts("headers")
    if let seconds = reader.number("timeoutSecond", 1...600) { options.timeout = .seconds(seconds) }
    return .otlp(options)
  }

  /// Looks the files that it names up.
  mutating func locateFiles(_ located: (String) -> String) {
    guard case .kafka(var options) = kind else { return }
    options.propertiesFile = options.propertiesFile.map(located)
    kind = .kafka(options)
  }

  /// Reads the files that it names. - Returns: the first fault; nil: there is no fault.
  public var fileFault: String? {
    guard case .kafka(let options) = kind else { return nil }
    do throws(OutputFailure) { _ = try KafkaOutput.properties(options) } catch { return error.description }
    return nil
  }

  private static func kafka(_ target: String, _ reader: inout EntryReader) -> Kind {
    var options = KafkaOutput.Options(brokers: target)
    if let topic = reader.text("topic") { options.topic = topic }
    options.propertiesFile = reader.text("propertiesFile")
    let isName = { (byte: UInt8) in Self.isNameByte(byte) || "ABCDEFGHIJKLMNOPQRSTUVWXYZ._".utf8.contains(byte) }
    if !(1...249).contains(options.topic.utf8.count) || !options.topic.utf8.allSatisfy(isName) {
      reader.faults.append("topic: must be 1 to 249 letters, digits, dots, _ and -")
    }
    if target.isEmpty || target.utf8.contains(where: { $0 <= UInt8(ascii: " ") }) {
      reader.faults.append("kafka: must be brokers without spaces, as k1.example:9092,k2.example:9092")
    }
    if let seconds = reader.number("timeoutSecond", 1...600) { options.timeout = .seconds(seconds) }
    return .kafka(options)
  }

  func output(_ time: any TimeSource) -> any ReportOutput {
    switch kind {
    case .ndjson(let options): NDJSONOutput(options, name: name, time: time)
    case .otlp(let options): OTLPOutput(options)
    case .kafka(let options): KafkaOutput(options, time: time)
    }
  }
}
