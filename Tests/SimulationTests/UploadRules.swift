import PrismBase
import PrismConfig
import PrismProtocol
import PrismTestSupport

@testable import PrismEngine

/// The rules that must hold whenever a POST begins, kept outside of the engine (docs/delivery.md, "Gates" and
/// "DeliveryDecision").
struct UploadRules {
  typealias Line = SimulatedCollector.Line

  /// A namespace's use of metered networks, as its window counts it. A life is one boot of the machine: the uptime alone ends
  /// a window, and the wall clock says nothing of it.
  struct Window {
    var began: Duration
    var usedBytes = 0
    /// Its last note may be lost: the daemon's own count is taken over at its next start.
    var isUncertain = false

    func isOver(_ now: Duration) -> Bool { now - began >= FlowWindow.length }
  }

  private struct InFlight {
    var isMetered: Bool
    /// No other packet of its line was on its way.
    var isFirst: Bool
    /// Counted when it began, in the window of that time.
    var estimatedBytes: Int
  }

  /// By packet.
  private var inFlight: [Line: [String: InFlight]] = [:]
  /// The windows that the collector announced lately: packets leave beside the answers.
  private var announced: [Line: [Int]] = [:]
  /// The most packets of one line that were on their way at a time.
  private(set) var mostInFlight = 0
  private(set) var windows: [NamespaceName: Window] = [:]
  /// A collector asked to be left alone until then.
  private var notBefore: [Line: (until: Duration, saidAt: Duration)] = [:]

  mutating func begins(
    _ packet: SimulatedCollector.Packet, estimatedBytes: Int, network: NetworkStatus.Kind, settings: LifeSettings,
    now: Duration
  ) throws {
    let (line, name) = (packet.line, packet.line.namespace)
    let others = inFlight[line, default: [:]]
    guard others[packet.id.description] == nil else { throw Broken(description: "\(packet.id) is sent twice at once") }
    // The one that all others wait for may always go.
    guard packet.pending == 0 || others.count < min(announced[line]?.max() ?? 1, settings[name].window) else {
      throw Broken(description: "\(others.count) packets of \(line) are on their way, and another one leaves")
    }
    mostInFlight = max(mostInFlight, others.count + 1)
    guard settings.isPresent(name), settings[name].isUpload else {
      throw Broken(description: "\(line) is uploaded, though isUpload is off")
    }
    // A packet that leaves in the moment of the answer did not wait for it.
    if let (until, saidAt) = notBefore[line], now < until, now > saidAt {
      throw Broken(description: "\(line) was asked to wait until \(until), and is sent at \(now)")
    }
    let isLoopback = settings[name].url?.contains("127.0.0.1") == true
    let isMetered = network == .metered && !isLoopback
    guard isLoopback || network != .none else { throw Broken(description: "\(line) is sent without a network") }
    if isMetered {
      try beginsMetered(packet, settings, now)
      let used = windows[name]!.usedBytes + estimatedBytes
      guard others.isEmpty || used - firstBytes(of: name, beside: line) <= settings[name].maxFlowBytes else {
        throw Broken(description: "what is on its way of \(name) may use \(used) bytes of its flow")
      }
      windows[name]!.usedBytes += estimatedBytes
    }
    inFlight[line, default: [:]][packet.id.description] = InFlight(
      isMetered: isMetered, isFirst: others.isEmpty, estimatedBytes: estimatedBytes)
  }

  /// The bytes of the first packets of a namespace's other lines. The first of a line leaves without a look at the budget, and
  /// may have been sent after a packet of this line that it overtook on its way here.
  private func firstBytes(of name: NamespaceName, beside line: Line) -> Int {
    inFlight.filter { $0.key.namespace == name && $0.key != line }.flatMap(\.value.values)
      .reduce(0) { $0 + ($1.isFirst && $1.isMetered ? $1.estimatedBytes : 0) }
  }

  private mutating func beginsMetered(
    _ packet: SimulatedCollector.Packet, _ settings: LifeSettings, _ now: Duration
  ) throws {
    let name = packet.line.namespace
    let stays = settings.wifiOnly(name)
    if let report = packet.reports.first(where: { stays.contains($0.type) }) {
      throw Broken(description: "report \(report.number) of \(report.type) leaves on a metered network")
    }
    roll(name, now)
    guard windows[name]!.usedBytes - firstBytes(of: name, beside: packet.line) < settings[name].maxFlowBytes else {
      throw Broken(description: "\(name) has used \(windows[name]!.usedBytes) bytes of its flow, and sends more")
    }
  }

  mutating func ends(_ line: Line, _ packet: String, _ answer: PostAnswer, now: Duration) {
    if let upload = inFlight[line]?[packet], upload.isMetered {
      roll(line.namespace, now)
      let used = windows[line.namespace]!.usedBytes + answer.bytesSent + answer.bytesReceived - upload.estimatedBytes
      windows[line.namespace]!.usedBytes = max(0, used)
    }
    inFlight[line]?[packet] = nil
    guard case .response(let status, let headers, _) = answer.outcome else { return }
    if headers["prism-receipt"]?.hasPrefix(packet) == true {
      announced[line] = (announced[line, default: []] + [headers["prism-window"].flatMap { Int($0) } ?? 1]).suffix(16)
    }
    guard [429, 503].contains(status), let seconds = headers["retry-after"].flatMap({ Int($0) }) else { return }
    let until = max(notBefore[line]?.until ?? .zero, now + .seconds(seconds))
    notBefore[line] = (until, now)
  }

  private mutating func roll(_ name: NamespaceName, _ now: Duration) {
    let window = windows[name] ?? Window(began: now)
    windows[name] = window.isOver(now) ? Window(began: now) : window
  }

  // MARK: What the world does

  /// Counts that were not written down yet are lost.
  mutating func wasKilled() {
    for name in windows.keys { windows[name]!.isUncertain = true }
    (notBefore, inFlight, announced) = ([:], [:], [:])
  }

  mutating func wasStopped() { (inFlight, announced) = ([:], [:]) }

  /// The daemon's count is taken over. - Throws: where nothing happened to it, and it is another one than before.
  mutating func starts(_ name: NamespaceName, usedBytes: Int, windowEndsIn: Duration, now: Duration) throws {
    if let window = windows[name], !window.isUncertain, !window.isOver(now) {
      guard usedBytes == window.usedBytes else {
        throw Broken(description: "\(name) had used \(window.usedBytes) bytes before the restart, and now \(usedBytes)")
      }
    }
    windows[name] = Window(began: now - (FlowWindow.length - windowEndsIn), usedBytes: usedBytes)
  }
}
