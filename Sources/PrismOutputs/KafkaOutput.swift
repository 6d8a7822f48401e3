import PrismBase

/// Hands reports to Apache Kafka: one message a report, in the order of the reports of each device, namespace and kind.
///
/// A report is delivered once all of its partition's replicas that are in sync have it. Reports go in waves, each of which
/// is one request to a partition, and the next wave waits for all answers: so no report overtakes one that failed. After a
/// failure a new producer begins behind the last report up to which all were delivered.
actor KafkaOutput: ReportOutput {
  struct Options: Sendable, Equatable {
    /// `HOST:PORT,HOST:PORT`
    var brokers: String
    var topic = "prism"
    /// Lines `NAME=VALUE` for librdkafka: TLS, passwords. Read again for each producer.
    var propertiesFile: String?
    /// A page fails once no broker has taken a message for as long.
    var timeout: Duration = .seconds(30)
  }

  private static let flushMilliseconds: Int32 = 100

  private let executor = DispatchQueueExecutor(label: "prism.collector.kafka")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private let options: Options
  private let time: any TimeSource
  private var producer: KafkaProducer?
  /// A broker refused a message, so each is sent by itself until the refused one is found.
  private var isSearching = false

  init(_ options: Options, time: any TimeSource) { (self.options, self.time) = (options, time) }

  nonisolated var batching: ReportBatching { .large }

  func close() { producer = nil }

  func deliver(_ reports: [StoredReport]) throws(OutputFailure) -> [RefusedReport] {
    let producer = if let producer { producer } else { try KafkaProducer(Self.properties(options)) }
    self.producer = producer
    producer.deliveries = KafkaDeliveries(count: reports.count)
    do throws(OutputFailure) { try send(reports, with: producer) } catch {
      self.producer = nil
      let taken = producer.deliveries.taken
      throw OutputFailure(
        error.description, taken: taken, refused: Self.refused(of: reports[..<taken], producer.deliveries))
    }
    return Self.refused(of: reports[...], producer.deliveries)
  }

  private static func refused(of reports: ArraySlice<StoredReport>, _ deliveries: KafkaDeliveries) -> [RefusedReport] {
    reports.indices.compactMap { place in
      deliveries.causes[place].map { RefusedReport(id: reports[place].id, cause: $0) }
    }
  }

  /// - Throws: a file that can't be read or has a fault.
  static func properties(_ options: Options) throws(OutputFailure) -> KafkaProperties {
    var properties = KafkaProperties(brokers: options.brokers)
    if let file = options.propertiesFile { try properties.add(file: file) }
    return properties
  }

  private func send(_ reports: [StoredReport], with producer: KafkaProducer) throws(OutputFailure) {
    var next = 0
    while next < reports.count {
      let end = wave(of: reports, from: next, bytesMax: producer.waveBytesMax)
      for place in next..<end {
        switch producer.queue(reports[place], to: options.topic, place: place) {
        case .queued: break
        case .tooLarge: producer.deliveries.refuse(place, "it is larger than message.max.bytes of this output")
        case .failed(let cause): producer.deliveries.fail(place, cause, isOfMessage: false)
        }
      }
      try finish(producer, upTo: end)
      next = end
    }
    isSearching = false
  }

  /// - Returns: the end of the reports that go together.
  private func wave(of reports: [StoredReport], from first: Int, bytesMax: Int) -> Int {
    guard !isSearching else { return first + 1 }
    var (end, bytes) = (first, 0)
    while end < reports.count {
      bytes += reports[end].messageBytesMax
      if bytes > bytesMax, end > first { break }
      end += 1
    }
    return end
  }

  private func finish(_ producer: KafkaProducer, upTo end: Int) throws(OutputFailure) {
    var answered: (count: Int, at: Duration) = (0, time.uptime)
    while producer.deliveries.answered < end {
      producer.flush(milliseconds: Self.flushMilliseconds)
      if let failure = producer.deliveries.failure {
        if isSearching, producer.deliveries.refuseFailed() { continue }
        isSearching = failure.isOfMessage
        throw OutputFailure(failure.cause)
      }
      let count = producer.deliveries.answered
      if count > answered.count { answered = (count, time.uptime) }
      if Task.isCancelled { throw OutputFailure("the collector stops") }
      guard time.uptime - answered.at < options.timeout else {
        let cause = producer.trouble ?? "no answer"
        throw OutputFailure(
          "the brokers took no message for \(options.timeout.components.seconds) s: \(cause)")
      }
    }
  }
}

extension StoredReport {
  /// At least what its message has, with its key and its headers.
  fileprivate var messageBytesMax: Int {
    meta.count + (payload?.count ?? 0) * 4 / 3 + 2 * (device.utf8.count + type.utf8.count) + reportID.utf8.count + 600
  }
}

/// Which reports of a page the brokers have answered for. Places count from 0.
struct KafkaDeliveries {
  private enum Place { case open, delivered, refused }

  private var places: [Place]
  /// Why no broker takes a report, by its place.
  private(set) var causes: [Int: String] = [:]
  /// Delivered or refused.
  private(set) var answered = 0
  /// The first message that this producer can't deliver, and why; nil: all may be.
  private(set) var failure: (place: Int, cause: String, isOfMessage: Bool)?

  init(count: Int) { places = [Place](repeating: .open, count: count) }

  /// How many reports from the first one on need not come again.
  var taken: Int { places.prefix { $0 != .open }.count }

  mutating func deliver(_ place: Int) { _ = answer(place, .delivered) }

  /// No broker takes this report, now or later.
  mutating func refuse(_ place: Int, _ cause: String) {
    if answer(place, .refused) { causes[place] = cause }
  }

  /// - Returns: false: it had an answer before.
  private mutating func answer(_ place: Int, _ answer: Place) -> Bool {
    guard places.indices.contains(place), places[place] == .open else { return false }
    places[place] = answer
    answered += 1
    return true
  }

  /// - Parameter isOfMessage: the cause is the message itself, or one of those that were sent with it.
  mutating func fail(_ place: Int, _ cause: String, isOfMessage: Bool) {
    failure = failure ?? (place, cause, isOfMessage)
  }

  /// The failed message is refused for good. - Returns: false: that is not the cause of the failure.
  mutating func refuseFailed() -> Bool {
    guard let failed = failure, failed.isOfMessage else { return false }
    failure = nil
    refuse(failed.place, failed.cause)
    return true
  }
}
