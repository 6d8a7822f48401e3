import PrismControl
import PrismProtocol
import Testing

@testable import PrismEngine

@Suite("The status page: its sentence, its light, its text")
struct StatusPageTests {
  private static let failure = FailureReport("2026-01-02T00:00:00Z", "connection refused")

  private static func report(_ change: (inout StatusReport, inout NamespaceReport) -> Void) -> StatusReport {
    var (report, shop) = (StatusReport(), NamespaceReport())
    shop.state = "active"
    change(&report, &shop)
    report.namespaces = NamedValues([.init("shop", shop)])
    return report
  }

  private typealias Case = (report: StatusReport, obstacles: [StatusVerdict.Obstacle], light: String, sentence: String)

  private static let cases: [Case] = [
    (report { _, _ in }, [], "sending", "Sending: nothing waits."),
    (report { $1.meta.waiting = 1 }, [], "sending", "Sending: 1 row is on its way."),
    (
      report { $1.meta.waiting = 3 }, [.init(namespace: "shop", reason: "the timer", isTimer: true)], "sending",
      "Sending: 3 rows are on their way."
    ),
    (
      report { $1.meta.waiting = 3 }, [.init(namespace: "shop", reason: "the network is down")], "waiting",
      "Waiting: shop sends nothing now, because the network is down."
    ),
    (
      report {
        ($1.payload.claimed, $1.lastFailure, $1.nextTryInSeconds) = (2, failure, 7)
      }, [], "waiting", "Waiting for the collector of shop: connection refused, tried again in 7 s."
    ),
    (report { $1.lastFailure = failure }, [], "sending", "Sending: nothing waits."),
    (
      report { ($1.state, $1.lastFailure) = ("held", failure) }, [.init(namespace: "shop", reason: "backoff")], "held",
      "Held: shop sends nothing, because connection refused."
    ),
    (
      report {
        ($0.store.takesReports, $0.store.cause, $1.state) = (false, "no space is left", "held")
      }, [], "held", "Held: reports are refused, because no space is left."
    ),
  ]

  @Test("the light and the sentence say the worst that is so", arguments: cases.indices)
  func verdicts(index: Int) {
    let (report, obstacles, light, sentence) = Self.cases[index]
    let verdict = StatusVerdict(report, obstacles)
    #expect(verdict.light.rawValue == light && verdict.sentence == sentence)
    #expect(StatusPages.page(report, obstacles).contains("class=\"light \(light)\""))
  }

  @Test("the title and the heading name the machine")
  func host() {
    for page in [StatusPages.page(Self.report { _, _ in }, [], host: "till-7"), StatusPages.page([], host: "till-7")] {
      #expect(page.contains(" of till-7 · prismd</title>") && page.contains(" of till-7</h1>"))
    }
  }

  @Test("dead letters, faults of the configuration, refusals and plain http are listed")
  func notes() {
    let report = Self.report {
      ($0.configFaults, $0.refused) = (["prismd.yaml:3: x: is wrong"], NamedValues([.init("too_large", 4)]))
      ($1.meta.dead, $1.isPlain) = (5, true)
    }
    let page = StatusPages.page(report, [])
    for words in ["prismd.yaml:3: x: is wrong", "4 too_large", "shop: 5 dead letters", "plain http"] {
      #expect(page.contains("<li>") && page.contains(words), "\(words)")
    }
  }

  @Test("texts from elsewhere are text, in every part of both pages")
  func hostile() {
    let attack = "<script>alert('1')</script>\"&\u{1b}[2J"
    var report = StatusReport()
    (report.configFaults, report.version, report.store.cause) = ([attack], attack, attack)
    (report.network.kind, report.store.state) = (attack, attack)
    report.refused = NamedValues([.init(attack, 1)])
    var namespace = NamespaceReport()
    (namespace.state, namespace.meta.dead, namespace.meta.waiting) = (attack, 1, 1)
    namespace.lastFailure = FailureReport("2026-01-02T00:00:00Z", attack)
    report.namespaces = NamedValues([.init(attack, namespace)])
    var finding = Finding("url", .fault, attack, advice: attack)
    finding.check = attack
    for page in [
      StatusPages.page(report, [.init(namespace: attack, reason: attack)], host: attack),
      StatusPages.page([finding], host: attack),
    ] {
      #expect(!page.contains("<script>alert") && !page.contains("'1'") && !page.contains("\u{1b}"))
      #expect(page.contains("&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&quot;&amp;"))
    }
  }

  @Test("nothing is loaded from another host, and no markup is written by the script")
  func ownOnly() {
    for text in [
      StatusFiles.script, StatusFiles.style, StatusPages.page(StatusReport(), []), StatusPages.silentStore(),
    ] {
      for word in ["http:", "https:", "//", "innerHTML", "eval(", "style=", "onclick"] { #expect(!text.contains(word)) }
    }
  }
}

extension FailureReport {
  fileprivate init(_ time: String, _ cause: String) {
    self.init()
    (self.time, self.cause) = (time, cause)
  }
}
