import CKafka
import PrismBase

/// A producer of librdkafka, for the one queue that owns it. Its end drops every message that is not delivered.
final class KafkaProducer {
  enum Sending {
    case queued, tooLarge
    case failed(String)
  }

  /// Librdkafka calls back with it, on the queue of `flush`.
  private final class Context {
    var deliveries = KafkaDeliveries(count: 0)
    /// The newest trouble with a broker: it is not yet a failure.
    var trouble: String?
  }

  private static let errorBytesMax = 512

  private let handle: OpaquePointer
  private let context = Context()
  /// Of the messages that are queued between two flushes.
  let waveBytesMax: Int

  /// - Throws: properties that librdkafka refuses, such as the path of a certificate that is not there.
  init(_ properties: KafkaProperties) throws(OutputFailure) {
    guard let configuration = rd_kafka_conf_new() else { throw OutputFailure("librdkafka has no memory") }
    for property in properties.values {
      guard rd_kafka_conf_set(configuration, property.name, property.value, nil, 0) == RD_KAFKA_CONF_OK else {
        rd_kafka_conf_destroy(configuration)
        throw OutputFailure("librdkafka refuses the property \(property.name)")
      }
    }
    rd_kafka_conf_set_opaque(configuration, Unmanaged.passUnretained(context).toOpaque())
    rd_kafka_conf_set_dr_msg_cb(configuration) { _, message, opaque in KafkaProducer.report(message, opaque) }
    rd_kafka_conf_set_error_cb(configuration) { _, code, reason, opaque in
      guard let opaque, let reason else { return }
      Unmanaged<Context>.fromOpaque(opaque).takeUnretainedValue().trouble = String(cString: reason)
    }
    rd_kafka_conf_set_log_cb(configuration) { _, _, _, _ in }
    var reason = [CChar](repeating: 0, count: Self.errorBytesMax)
    guard let made = rd_kafka_new(RD_KAFKA_PRODUCER, configuration, &reason, reason.count) else {
      rd_kafka_conf_destroy(configuration)
      throw OutputFailure(String(decoding: reason.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self))
    }
    (handle, waveBytesMax) = (made, properties.waveBytesMax)
  }

  /// Joins librdkafka's threads: it may wait for a name to be resolved.
  deinit {
    rd_kafka_purge(handle, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT)
    rd_kafka_destroy(handle)
  }

  private static func report(_ message: UnsafePointer<rd_kafka_message_t>?, _ opaque: UnsafeMutableRawPointer?) {
    guard let message, let opaque else { return }
    let context = Unmanaged<Context>.fromOpaque(opaque).takeUnretainedValue()
    let (place, code) = (Int(bitPattern: message.pointee._private) - 1, message.pointee.err)
    if code == RD_KAFKA_RESP_ERR_NO_ERROR {
      context.deliveries.deliver(place)
    } else {
      context.deliveries.fail(
        place, String(cString: rd_kafka_err2str(code)), isOfMessage: messageErrors.contains(code.rawValue))
    }
  }

  /// A broker's verdicts on messages, not on their sender. A failed checksum (INVALID_MSG) is no verdict.
  private static let messageErrors = [
    RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, RD_KAFKA_RESP_ERR_INVALID_RECORD, RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE,
  ].map(\.rawValue)

  var deliveries: KafkaDeliveries {
    get { context.deliveries }
    set { context.deliveries = newValue }
  }

  var trouble: String? { context.trouble }

  /// - Parameter place: of the report in its page.
  func queue(_ report: StoredReport, to topic: String, place: Int) -> Sending {
    guard let headers = rd_kafka_headers_new(4) else { return .failed("librdkafka has no memory") }
    let added = [
      Self.add("prism-packet", report.packetID, to: headers), Self.add("prism-device", report.device, to: headers),
      Self.add("prism-namespace", report.namespace, to: headers), Self.add("prism-type", report.type, to: headers),
    ]
    var code = added.first { $0 != RD_KAFKA_RESP_ERR_NO_ERROR } ?? RD_KAFKA_RESP_ERR_NO_ERROR
    if code == RD_KAFKA_RESP_ERR_NO_ERROR {
      let key = Array("\(report.device)/\(report.namespace)/\(report.kind)".utf8)
      var value: [UInt8] = []
      report.appendLine(to: &value)
      code = prism_kafka_produce(
        handle, topic, key, key.count, value, value.count, report.receivedTime, headers,
        UnsafeMutableRawPointer(bitPattern: place + 1))
    }
    if code == RD_KAFKA_RESP_ERR_NO_ERROR { return .queued }
    rd_kafka_headers_destroy(headers)
    switch code {
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE: return .tooLarge
    default: return .failed(String(cString: rd_kafka_err2str(code)))
    }
  }

  private static func add(_ name: StaticString, _ value: String, to headers: OpaquePointer) -> rd_kafka_resp_err_t {
    let name = UnsafeRawPointer(name.utf8Start).assumingMemoryBound(to: CChar.self)
    return rd_kafka_header_add(headers, name, -1, value, value.utf8.count)
  }

  /// Sends what was queued at once, and takes the brokers' answers. Returns when all of them came, or after this time.
  func flush(milliseconds: Int32) { rd_kafka_flush(handle, milliseconds) }
}

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
      let text = String(line).trimmed
      if text.isEmpty || text.hasPrefix("#") { continue }
      let place = "\(file):\(index + 1)"
      guard let sign = text.firstIndex(of: "="), sign != text.startIndex else {
        throw OutputFailure("\(place): must be NAME=VALUE, with a property of librdkafka")
      }
      let name = String(text[..<sign]).trimmed
      guard !Self.reserved.contains(name) else { throw OutputFailure("\(place): \(name) can't be set") }
      values.append((name, String(text[text.index(after: sign)...]).trimmed))
      if let fault = Self.fault(of: values[values.count - 1]) { throw OutputFailure("\(place): \(fault)") }
    }
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
