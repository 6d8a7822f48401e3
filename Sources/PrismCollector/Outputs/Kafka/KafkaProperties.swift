import CKafka
import PrismBase
import PrismConfig

/// The properties of a producer: those that the promises need, and those of an operator's file.
struct KafkaProperties {
  static let fileBytesMax = 65_536

  /// Names that the file may not set: an output's promises hold by them, or they load code.
  private static let reserved: Set<String> = [
    "bootstrap.servers", "metadata.broker.list", "enable.idempotence", "acks", "request.required.acks",
    "linger.ms", "queue.buffering.max.ms", "batch.size", "batch.num.messages", "message.timeout.ms",
    "delivery.timeout.ms", "message.send.max.retries", "retries",
    "transactional.id", "plugin.library.paths", "ssl.engine.location", "test.mock.num.brokers",
  ]

  private(set) var values: [(name: String, value: String)]

  /// A message is tried until the producer ends. Messages wait for the flush of their wave (`KafkaOutput`).
  init(brokers: String) {
    values = [
      ("bootstrap.servers", brokers), ("client.id", "prism-collector"), ("compression.codec", "lz4"),
      ("partitioner", "murmur2_random"), ("enable.idempotence", "true"), ("message.timeout.ms", "0"),
      ("linger.ms", "10000"), ("log_level", "0"),
    ]
  }

  /// A request with as many bytes of messages is never cut in two.
  var waveBytesMax: Int {
    let largest = values.last { $0.name == "message.max.bytes" }.flatMap { Int($0.value) } ?? 1_000_000
    return min(largest, 1_000_000) / 2
  }

  /// Adds the lines `NAME=VALUE` of a file. - Throws: the file and the line; never a value.
  mutating func add(file: String) throws(OutputFailure) {
    let content: (bytes: [UInt8], mode: UInt32)
    do throws(FileError) { content = try SmallFile.readWithMode(file, bytesMax: Self.fileBytesMax) } catch {
      throw OutputFailure(error.description)
    }
    guard content.mode & 0o004 == 0 else { throw OutputFailure("\(file): others may read it; run chmod 600 \(file)") }
    let lines = String(decoding: content.bytes, as: UTF8.self).split(
      omittingEmptySubsequences: false, whereSeparator: \.isNewline)
    for (index, line) in lines.enumerated() {
      let text = line.drop { $0 == " " || $0 == "\t" }
      if text.isEmpty || text.hasPrefix("#") { continue }
      let place = "\(file):\(index + 1)"
      guard let sign = text.firstIndex(of: "="), sign != text.startIndex else {
        throw OutputFailure("\(place): must be NAME=VALUE, with a property of librdkafka")
      }
      let name = Self.trimmed(text[..<sign])
      guard !Self.reserved.contains(name) else { throw OutputFailure("\(place): \(name) can't be set") }
      values.append((name, Self.trimmed(text[text.index(after: sign)...])))
      if let fault = Self.fault(of: values[values.count - 1]) { throw OutputFailure("\(place): \(fault)") }
    }
  }

  private static func trimmed(_ text: Substring) -> String {
    var text = text.drop { $0 == " " || $0 == "\t" }
    while text.last == " " || text.last == "\t" { text = text.dropLast() }
    return String(text)
  }

  private static func fault(of property: (name: String, value: String)) -> String? {
    guard let configuration = rd_kafka_conf_new() else { return "librdkafka has no memory" }
    defer { rd_kafka_conf_destroy(configuration) }
    switch rd_kafka_conf_set(configuration, property.name, property.value, nil, 0) {
    case RD_KAFKA_CONF_OK: return nil
    case RD_KAFKA_CONF_UNKNOWN: return "\(property.name.prefix(64)) is no property of librdkafka"
    default: return "\(property.name) has a value that librdkafka refuses"
    }
  }
}
