package bindpost.worker.app;

import java.io.ByteArrayInputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.net.MalformedURLException;
import java.net.URI;
import java.net.URISyntaxException;
import java.net.URL;
import java.nio.file.Files;
import java.security.CodeSource;
import java.security.cert.Certificate;
import java.util.ArrayList;
import java.util.List;
import java.util.jar.Attributes;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.jar.Manifest;
import java.util.zip.ZipFile;

/**
 * A jar or a folder with classes of the app. Signatures of jars are not verified: the app trusts its own files, and the
 * check of one signed library takes as long as the start of the worker.
 */
final class JarSource {
    private static final String MANIFEST = "META-INF/MANIFEST.MF";

    private final File file;
    private final JarFile jar;
    private final CodeSource codeSource;
    private Attributes attributes;

    JarSource(File file) throws IOException {
        this.file = file;
        jar = file.isDirectory() ? null : new JarFile(file, false, ZipFile.OPEN_READ, JarFile.runtimeVersion());
        codeSource = new CodeSource(file.toURI().toURL(), (Certificate[]) null);
    }

    CodeSource codeSource() {
        return codeSource;
    }

    /** Returns the content of an entry, or null. */
    byte[] read(String name) throws IOException {
        if (jar == null) {
            File entry = new File(file, name);
            return entry.isFile() ? Files.readAllBytes(entry.toPath()) : null;
        }
        JarEntry entry = jar.getJarEntry(name);
        if (entry == null) return null;
        try (InputStream content = jar.getInputStream(entry)) {
            return content.readAllBytes();
        }
    }

    /** Returns the address of an entry, or null. */
    URL find(String name) {
        try {
            if (jar == null) {
                File entry = new File(file, name);
                return entry.exists() ? entry.toURI().toURL() : null;
            }
            JarEntry entry = jar.getJarEntry(name);
            if (entry == null) return null;
            // The name may have characters that are not allowed in an address, and the entry may be for this Java
            // version.
            String path = new URI(null, null, entry.getRealName(), null).getRawPath();
            return new URL("jar:" + file.toURI().toURL() + "!/" + path);
        } catch (MalformedURLException | URISyntaxException error) {
            return null;
        }
    }

    boolean contains(String name) {
        return jar == null ? new File(file, name).isFile() : jar.getEntry(name) != null;
    }

    /** Returns the files that the manifest adds to the class path. */
    List<File> classPath() {
        List<File> files = new ArrayList<>();
        String names = attributes().getValue(Attributes.Name.CLASS_PATH);
        if (names == null) return files;
        for (String name : names.trim().split("\\s+")) {
            try {
                URI address = file.toURI().resolve(name);
                if ("file".equals(address.getScheme())) files.add(new File(address));
            } catch (IllegalArgumentException error) {
                // Java ignores such a name too.
            }
        }
        return files;
    }

    /** Returns the main attributes of the manifest. Those of single entries are digests, and there may be thousands. */
    synchronized Attributes attributes() {
        if (attributes == null) attributes = readAttributes();
        return attributes;
    }

    private Attributes readAttributes() {
        try {
            byte[] manifest = read(MANIFEST);
            if (manifest == null) return new Attributes();
            return new Manifest(new ByteArrayInputStream(manifest, 0, mainSection(manifest))).getMainAttributes();
        } catch (IOException | IllegalArgumentException error) {
            return new Attributes();
        }
    }

    /** Returns where the first blank line ends. */
    private static int mainSection(byte[] manifest) {
        boolean isLineStart = false;
        for (int i = 0; i < manifest.length; i++) {
            if (manifest[i] == '\n') {
                if (isLineStart) return i + 1;
                isLineStart = true;
            } else if (manifest[i] != '\r') {
                isLineStart = false;
            }
        }
        return manifest.length;
    }
}
