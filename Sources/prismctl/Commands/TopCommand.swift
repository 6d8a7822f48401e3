import Glibc
import PrismBase
import PrismControl
import PrismProtocol

extension Command {
  static let top = Command(
    words: ["top"],
    summary: "show the status live: rates and the last minute of each namespace; arrows scroll, / filters, q quits",
    options: [Option("--once", nil, "one frame, for a file or a pipe")], example: "prismctl top"
  ) { invocation throws(Failure) in
    if invocation.has("--once") { return try printFrame(invocation) }
    guard Invocation.environment("TERM") != "dumb", let screen = Screen() else {
      throw .usage(
        "top: this terminal can't be drawn on; `prismctl top --once` prints one frame, `prismctl status` the figures")
    }
    follow(invocation, on: screen)
    screen.close()
  }

  private static let interval = 1.0

  /// Two looks, a second apart: rates need both.
  private static func printFrame(_ invocation: Invocation) throws(Failure) {
    var history = TopHistory()
    for look in 0..<2 {
      if look > 0 { usleep(UInt32(interval * 1_000_000)) }
      history.add(try currentStatus(invocation), now: now())
    }
    let size = TopFrame.Size(columns: Screen.size?.columns ?? 80, rows: 10_000)
    let frame = TopFrame(history, trouble: nil, size: size, paint: .ofOutput, hasBlocks: hasBlocks, footer: "")
    print(frame.lines.dropLast().joined(separator: "\n"))
  }

  private static func follow(_ invocation: Invocation, on screen: Screen) {
    var history = TopHistory()
    var (trouble, next): (String?, Double) = (nil, now())
    var view = TopView()
    while true {
      if now() >= next {
        do throws(Failure) {
          history.add(try currentStatus(invocation), now: now())
          trouble = nil
        } catch { trouble = error.message }
        next = max(next + interval, now())
      }
      let frame = TopFrame(
        history, trouble: trouble, size: screen.size, paint: .ofOutput, hasBlocks: hasBlocks, view: view,
        footer: view.footer)
      screen.draw(frame.lines)
      view.offset = min(view.offset, frame.offsetMax)
      switch screen.wait(milliseconds: Int(max(0, next - now()) * 1000) + 1) {
      case .quit: return
      case .keys(let keys):
        view.take(keys, page: max(1, screen.size.rows - 8))
        if view.isOver { return }
      case .resized, .nothing: break
      }
    }
  }

  /// A daemon that hangs must not hang what shows it.
  private static func currentStatus(_ invocation: Invocation) throws(Failure) -> StatusReport {
    var status = StatusReport()
    try ControlConnection(invocation, timeoutSeconds: 2).ask(ControlRequest(.status)) { answer in
      status = answer[Answers.status] ?? status
    }
    return status
  }

  /// Seconds.
  private static func now() -> Double { Double(SystemTime().uptime.wholeMilliseconds) / 1000 }

  private static var hasBlocks: Bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].compactMap(Invocation.environment).first { !$0.isEmpty } ?? ""
    return locale.uppercased().contains("UTF-8") || locale.uppercased().contains("UTF8")
  }
}
