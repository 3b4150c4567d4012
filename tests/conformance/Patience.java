import io.nats.NatsRunnerUtils;
import io.nats.OutputThreadProvider;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.platform.launcher.LauncherSession;
import org.junit.platform.launcher.LauncherSessionListener;

/**
 * Lets a test go on only when the server that it started listens. The runner of the suite asks once, a tenth of a
 * second after the start, and goes on without an answer.
 */
public class Patience implements LauncherSessionListener, OutputThreadProvider {
    private static final Pattern PROCESS = Pattern.compile("pid\\((\\d+)\\)");
    private static final long DEADLINE_NANOS = 20_000_000_000L;
    private static final long STEP_MILLIS = 5;

    @Override
    public void launcherSessionOpened(LauncherSession session) {
        NatsRunnerUtils.setDefaultOutputThreadProvider(this);
    }

    /** Asked by the runner for each server, just after its start. */
    @Override
    public Thread getOutputThread(String name, Runnable output) {
        Matcher found = PROCESS.matcher(name);
        if (found.find()) {
            awaitServer(Long.parseLong(found.group(1)));
        }
        return OutputThreadProvider.super.getOutputThread(name, output);
    }

    /** A server writes the file of its ports when it listens; one that could not start is gone. */
    private static void awaitServer(long process) {
        Path ports = Path.of(System.getProperty("ports.directory"), "nats-server_" + process + ".ports");
        long end = System.nanoTime() + DEADLINE_NANOS;
        while (!Files.exists(ports) && alive(process) && System.nanoTime() < end) {
            try {
                Thread.sleep(STEP_MILLIS);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                return;
            }
        }
    }

    private static boolean alive(long process) {
        return ProcessHandle.of(process).map(ProcessHandle::isAlive).orElse(false);
    }
}
