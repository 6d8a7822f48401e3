import PrismEngine
import PrismProtocol
import PrismTestSupport

/// How a collector, or a proxy before it, behaves for a while.
enum Mood: String, CaseIterable {
  case healthy, unreachable, hanging, slow, resetting, forgetful, failing, asking, misconfigured, portal, narrow
  case rejecting
  /// A proxy refuses packets with statuses of the collector.
  case fronted
  /// Bytes on a kept connection are not for the packet: a server or a proxy sent them beside its answers.
  case straying
  /// Has another key under the id.
  case foreignKey
  /// Something else for every packet.
  case moody
}

/// The treatment of one POST.
struct Deed {
  enum Answer {
    /// The collector's answer to the packet.
    case honest
    case status(Int, [String: String], body: String)
    case failure(PostAnswer.Failure, mayHaveLeft: Bool)
  }

  /// Longer than anybody waits.
  private static let forEver: Duration = .seconds(1_000_000)

  /// Until the packet is at the collector; and from there until the answer is back.
  var before: Duration = .milliseconds(20), after: Duration = .milliseconds(20)
  /// The packet gets through to the collector.
  var reaches = true
  /// The collector has no place for packets that wait for another.
  var holdsNone = false
  /// The window that the collector announces in an answer that takes the packet; nil: no window.
  var window: Int?
  /// The collector takes no more rows in one packet.
  var rowsMax = Int.max
  var answer = Answer.honest
  var origin: PostAnswer.Origin
  /// An honest refusal says which packet it is for.
  var namesPacket: Bool
  /// The packet itself is refused, by a collector that could read it.
  private(set) var isRefusal = false

  /// - Parameter isKnown: the collector has this packet already, and would say nothing but that it has.
  init(
    _ mood: Mood, isKnown: Bool, onNewConnection: Bool, now: Int64, using random: inout SeededRandom
  ) {
    origin = onNewConnection ? .newConnection : random.pick(PostAnswer.Origin.allCases)
    namesPacket = random.oneIn(2)
    holdsNone = random.oneIn(20)
    window = random.oneIn(30) ? nil : random.pick([1, 8, 8, 64, 64, 64])
    // Connections have their own pace: packets come in another order than they left in.
    (before, after) = (.milliseconds(random.pick([20, 20, 20, 300])), .milliseconds(random.pick([20, 20, 300])))
    switch mood {
    case .healthy: break
    case .unreachable:
      reaches = false
      answer = .failure(random.pick([.connect, .resolve, .tls]), mayHaveLeft: false)
    case .hanging: if random.oneIn(2) { before = Self.forEver } else { after = Self.forEver }
    case .slow: (before, after) = (.seconds(Int.random(in: 0...30, using: &random)), .seconds(5))
    case .resetting: (reaches, answer) = (false, .failure(.reset, mayHaveLeft: true))
    case .forgetful: answer = .failure(random.pick([.reset, .badResponse]), mayHaveLeft: true)
    case .failing: refuse(random.pick([500, 502, 503, 408, 425, 507]))
    case .asking: ask(now, &random)
    case .misconfigured: refuse(random.pick([301, 302, 307, 401, 403, 404, 405]))
    case .portal:
      reaches = false
      let headers = random.oneIn(2) ? [:] : ["prism-receipt": "01890000-0000-7000-8000-000000000000"]
      answer = .status(random.pick([200, 204]), headers, body: "<html>Welcome to the hotel</html>")
    case .narrow: rowsMax = 3
    // A collector that says that of a packet that it took before lies, and no sender can know: the sane ones don't.
    case .rejecting:
      guard !isKnown else { break }
      refuse(random.pick([400, 413, 415, 422]))
      isRefusal = true
    case .fronted:
      // A packet that got through before may meet another proxy, with another limit.
      refuse(random.pick([400, 410, 413, 415, 422]))
      if case .status(let status, let headers, _) = answer {
        answer = .status(status, headers, body: "<html>no</html>")
      }
      origin = .newConnection
    case .straying: if origin != .newConnection { stray(&random) }
    case .foreignKey:
      refuse(400)
      answer = .status(
        400, [:], body: #"{"message":"no","code":"\#(random.oneIn(2) ? "decryptionFailed" : "macMismatch")"}"#)
    case .moody:
      let moods = Mood.allCases.filter { $0 != .moody && $0 != .rejecting }
      self = Deed(
        random.pick(moods), isKnown: isKnown, onNewConnection: onNewConnection, now: now, using: &random)
    }
  }

  private mutating func refuse(_ status: Int) {
    reaches = false
    answer = .status(status, [:], body: #"{"message":"not now"}"#)
  }

  /// The packet itself may get through all the same.
  private mutating func stray(_ random: inout SeededRandom) {
    reaches = random.oneIn(2)
    answer = .status(random.pick([400, 408, 413, 415, 422, 500]), [:], body: "<html>Bad Request</html>")
  }

  private mutating func ask(_ now: Int64, _ random: inout SeededRandom) {
    reaches = false
    let seconds = Int.random(in: 1...1200, using: &random)
    answer = .status(random.pick([429, 503]), ["retry-after": String(seconds)], body: "")
  }
}
