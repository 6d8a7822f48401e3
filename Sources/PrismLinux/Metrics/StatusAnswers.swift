import Glibc
import PrismBase
import PrismEngine
import PrismHTTP

/// The answers for people at `metrics.listen`. A web page of another origin can point its own name here (DNS rebinding):
/// so these pages are for a `Host` in numbers, `localhost`, or this machine's name.
struct StatusAnswers: Sendable {
  /// The checks ask collectors: they run once in this time, however often somebody asks.
  static let checkInterval: Duration = .seconds(30)

  private static let headers: [(name: String, value: String)] = [
    (
      "Content-Security-Policy",
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; form-action 'none'; "
        + "base-uri 'none'; frame-ancestors 'none'"
    ),
    ("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer"), ("Cache-Control", "no-store"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
  ]

  private(set) var pages: StatusPages?
  private var checked: (at: Duration, task: Task<String, Never>)?

  mutating func show(_ pages: StatusPages) { self.pages = pages }

  static func html(_ text: String, status: Int = 200) -> HTTPResponse {
    HTTPResponse(status: status, contentType: "text/html; charset=utf-8", headers: headers, text: text)
  }

  /// nil: the page is answered.
  func refusal(_ request: HTTPRequest) -> HTTPResponse? {
    guard HostCheck(names: [Self.machine]).allows(request.header("host")) else {
      return .refusal(403, "ask by the address in numbers, by localhost, or by the name of this machine")
    }
    return pages == nil ? .refusal(503, "the daemon is starting", headers: [("Retry-After", "1")]) : nil
  }

  /// The checks that run, or ran a short time ago. - Parameter now: uptime.
  mutating func check(now: Duration) -> Task<String, Never>? {
    if let checked, now - checked.at < Self.checkInterval { return checked.task }
    guard let pages else { return nil }
    let task = Task { await pages.doctor() }
    checked = (now, task)
    return task
  }

  static let style = HTTPResponse(
    status: 200, contentType: "text/css; charset=utf-8", headers: headers, text: StatusFiles.style)
  static let script = HTTPResponse(
    status: 200, contentType: "text/javascript; charset=utf-8", headers: headers, text: StatusFiles.script)

  /// Empty if the kernel does not tell.
  static var machine: String {
    var names = utsname()
    guard uname(&names) == 0 else { return "" }
    return withUnsafeBytes(of: &names.nodename) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
  }
}
